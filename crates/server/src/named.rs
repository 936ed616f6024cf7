//! Enums whose values have names: in metrics, in the OpenAPI document.

/// Declares an enum, the list of its values and their names.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a value without a comment is what its name says")]
        $vis enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            /// All of them, in the order of their numbers.
            $vis const ALL: &[Self] = &[$(Self::$value,)+];

            /// The name of a value.
            $vis fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}
