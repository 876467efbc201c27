//! Words of enums as a table: `worded! { Stance + ALL { Go = "go", Block = "block" } }`.

/// Gives each value of an enum a word. The extras: `ALL` lists the values in the order of the table,
/// `Display` prints the word, and `phrase` is what people read where it is not the word (`= "no_go"
/// | "no go"`).
macro_rules! worded {
    (@ALL $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// Every value.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
        }
    };
    (@Display $name:ident $table:tt) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
    (@phrase $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// What people read.
            pub(crate) const fn phrase(self) -> &'static str {
                match self {
                    $(Self::$value => worded!(@last $word $($phrase)?),)+
                }
            }
        }
    };
    (@last $word:literal) => { $word };
    (@last $word:literal $phrase:literal) => { $phrase };
    (@word $name:ident { $($value:ident = $word:literal $(| $phrase:literal)?),+ $(,)? }) => {
        impl $name {
            /// The word in files, in JSON and in results.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    };
    (@each $name:ident [$($extra:ident)*] $table:tt) => {
        worded! { @word $name $table }
        $(worded! { @$extra $name $table })*
    };
    ($name:ident $(+ $extra:ident)* { $($table:tt)+ }) => {
        worded! { @each $name [$($extra)*] { $($table)+ } }
    };
}

pub(crate) use worded;
