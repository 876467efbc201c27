//! The tokenizer of the index: the words of [`crate::base::stems`], stemmed by the same algorithm, so
//! that the words of a query are found.

use tantivy::tokenizer::{
    Language, RemoveLongFilter, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
};

use crate::base::stems::{MAX_WORD_BYTES, words};

/// Tokenizer of the index.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordTokenizer)
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// Tokenizer that yields the words of a text.
#[derive(Clone)]
struct WordTokenizer;

struct WordStream<I> {
    words: I,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = tantivy::tokenizer::BoxTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        let token = Token { position: usize::MAX, ..Token::default() };
        tantivy::tokenizer::BoxTokenStream::new(WordStream { words: words(text), token })
    }
}

impl<I: Iterator<Item = (usize, String)>> TokenStream for WordStream<I> {
    fn advance(&mut self) -> bool {
        let Some((at, word)) = self.words.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = at;
        self.token.offset_to = at + word.len();
        self.token.text = word;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stems::stems;

    #[test]
    fn the_index_and_queries_have_the_same_stems() {
        let mut analyzer = analyzer();
        let long = "x".repeat(MAX_WORD_BYTES);
        for text in ["running payments failed vendor.example", "enterprise été 支付", &long, ""]
        {
            let mut indexed = Vec::new();
            analyzer.token_stream(text).process(&mut |token| indexed.push(token.text.clone()));
            assert_eq!(indexed, stems(text), "{text}");
        }
    }
}
