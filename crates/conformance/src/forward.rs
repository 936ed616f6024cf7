//! Methods that only pass a call on, one line each: of stores in front of another store, and of readers that add what they have seen.

/// Writes methods that call the method of the same name of another value, with the same arguments and perhaps more:
///
/// ```text
/// forward! { self => self.inner;
///     fn counts(kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>>;
/// }
/// forward! { self => self.store, &self.frontier;
///     pub(crate) fn counts(kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>>;
/// }
/// ```
///
/// An argument after a semicolon is not passed on; what is passed in addition may use it.
#[macro_export]
macro_rules! forward {
    ($this:ident => $to:expr $(, $last:expr)*;) => {};
    ($this:ident => $to:expr $(, $last:expr)*;
        $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(; $own:ident: $own_type:ty)?) -> $output:ty; $($rest:tt)*
    ) => {
        $vis async fn $name(&$this, $($argument: $type,)* $($own: $own_type)?) -> $output {
            $to.$name($($argument,)* $($last),*).await
        }
        $crate::forward! { $this => $to $(, $last)*; $($rest)* }
    };
}
