//! The cost of a reply: its tokens by kind, each kind at its price.

use super::kind::Usage;
use crate::scenario::spec::price::Price;

impl Price {
    /// Cost of these tokens in US dollars. Prompt tokens that were read from or written to the
    /// provider's cache have their own prices.
    pub fn cost(&self, usage: &Usage) -> f64 {
        // Both are part of the prompt, whatever an endpoint reports.
        let cached = usage.cached_tokens.min(usage.prompt_tokens);
        let written = usage.cache_write_tokens.min(usage.prompt_tokens - cached);
        let plain = usage.prompt_tokens - cached - written;
        let of = |tokens: u64, price: f64| tokens as f64 * price;
        (of(plain, self.input)
            + of(cached, self.cached.unwrap_or(self.input))
            + of(written, self.cache_write.unwrap_or(self.input))
            + of(usage.completion_tokens, self.output))
            / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let whole = Price { input: 1.0, output: 10.0, cached: Some(0.1), cache_write: Some(1.25) };
        let usage = |prompt, completion, cached, written| Usage {
            cached_tokens: cached,
            cache_write_tokens: written,
            ..Usage::new(prompt, completion)
        };
        let bare = Price::new(1.0, 10.0);
        for (price, usage, micros) in [
            (whole, usage(0, 0, 0, 0), 0.0),
            (whole, usage(100, 0, 0, 0), 100.0),
            (whole, usage(0, 100, 0, 0), 1_000.0),
            (whole, usage(100, 0, 100, 0), 10.0),
            (whole, usage(100, 0, 0, 100), 125.0),
            (whole, usage(100, 10, 60, 20), 20.0 + 6.0 + 25.0 + 100.0),
            // Without prices of their own, they cost as much as other tokens.
            (bare, usage(100, 10, 60, 20), 200.0),
            // A count above the prompt's is limited to the prompt.
            (whole, usage(100, 0, 500, 500), 10.0),
        ] {
            let cost = price.cost(&usage) * 1e6;
            assert!((cost - micros).abs() < 1e-6, "{usage:?}: {cost}");
        }
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { cached: Some(0.1), ..Price::new(1.0, 4.0) };
        let usage = Usage { cached_tokens: 600_000, ..Usage::new(1_000_000, 500_000) };
        assert!((price.cost(&usage) - (0.4 + 0.06 + 2.0)).abs() < 1e-9);
    }
}
