//! Names of an enum's variants, as requests, responses, settings and files spell them.

/// Gives an enum the list of its variants, a name for each, and the variant of a name.
#[macro_export]
macro_rules! names {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// All variants.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in requests, responses, settings and files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The variant with that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}

pub(crate) use names;
