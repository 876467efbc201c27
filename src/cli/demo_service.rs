//! `roundtable demo-service`: a small local HTTP service that scenarios with real tools can call.
//! Some of its answers are slow or fail, always the same ones, so that retries and timeouts can be
//! shown.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::exit::Exit;
use super::streams;
use super::streams::refuse;
use crate::base::refused::Refused;
use crate::base::visible::visible_within;

/// Size limit of a request, in bytes.
const REQUEST_BYTES: usize = 64 << 10;
/// Latency of a slow answer: longer than the timeout of a scenario should be.
const SLOW: Duration = Duration::from_secs(5);
/// Every third request for payments fails.
const FAIL_EVERY: u64 = 3;
/// Every fourth request for stock is slow.
const SLOW_EVERY: u64 = 4;

/// Serves requests until the program ends.
pub async fn run(port: u16) -> Exit {
    // The loopback address: other machines cannot reach it.
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Ok(listener) => listener,
        Err(error) => {
            let why = Refused::new(format!("cannot use port {port}")).because(error);
            return refuse(&why.help("choose another with --port"), Exit::Usage);
        }
    };
    let at = listener.local_addr().map_or(port, |address| address.port());
    print_line(&format!("demo shop at http://127.0.0.1:{at}; press Ctrl-C to end it"));
    let shop = Arc::new(Shop::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shop)));
            }
            // Probably too many open files: wait until some are closed.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

fn print_line(line: &str) {
    // The service continues if its standard output cannot be written.
    let _ = writeln!(streams::stdout_data(), "{line}");
}

/// Answers the requests of one connection until it is closed.
async fn serve(mut stream: TcpStream, shop: Arc<Shop>) {
    let mut read = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut read).await {
        let answer = shop.answer(&request);
        sleep(answer.after).await;
        print_line(&format!("{} {}", answer.status, visible_within(&request, 100)));
        if stream.write_all(&answer.bytes()).await.is_err() {
            return;
        }
    }
}

/// The next request's method and target. `None` at the end of the stream, or if it is not HTTP. A
/// body is skipped.
async fn next_request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(read.get(..end)?).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let whole = end + 4 + length.unwrap_or(0_usize).min(REQUEST_BYTES);
            if read.len() >= whole {
                read.drain(..whole);
                let line = head.lines().next()?;
                return Some(line.rsplit_once(' ').map_or(line, |(asked, _)| asked).to_owned());
            }
        }
        if read.len() > 2 * REQUEST_BYTES || stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}

/// State of the shop: the number of requests for each resource.
#[derive(Debug, Default)]
struct Shop {
    payments: AtomicU64,
    stock: AtomicU64,
}

/// A response of the shop.
#[derive(Debug, PartialEq)]
struct ShopResponse {
    status: &'static str,
    /// Value of the `Retry-After` header, in seconds.
    retry_after: Option<u32>,
    /// Delay before the response is sent.
    after: Duration,
    body: Value,
}

impl ShopResponse {
    fn json(status: &'static str, body: Value) -> Self {
        Self { status, retry_after: None, after: Duration::ZERO, body }
    }

    fn bytes(&self) -> Vec<u8> {
        let body = self.body.to_string();
        let retry = self.retry_after.map(|s| format!("retry-after: {s}\r\n")).unwrap_or_default();
        format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\n\r\n{body}",
            self.status,
            body.len()
        )
        .into_bytes()
    }
}

impl Shop {
    /// The response to a request such as `GET /v1/orders?region=EU`.
    fn answer(&self, request: &str) -> ShopResponse {
        let Some(("GET", target)) = request.split_once(' ') else {
            return ShopResponse::json("405 Method Not Allowed", json!({ "error": "use GET" }));
        };
        let path = target.split('?').next().unwrap_or_default();
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed) + 1;
        match path.split('/').collect::<Vec<_>>()[..] {
            ["", "v1", "orders"] => ShopResponse::json(
                "200 OK",
                json!({ "orders": 4820, "gross_sales_usd": 182_450.0 }),
            ),
            ["", "v1", "payments"] if count(&self.payments).is_multiple_of(FAIL_EVERY) => {
                let body = json!({ "error": "the payments database is busy" });
                ShopResponse {
                    retry_after: Some(1),
                    ..ShopResponse::json("503 Service Unavailable", body)
                }
            }
            ["", "v1", "payments"] => {
                let body = json!({ "failed_payment_rate": 0.023, "gateway_incident": "none" });
                ShopResponse::json("200 OK", body)
            }
            ["", "v1", "stock", sku] if !sku.is_empty() => {
                let after = if count(&self.stock).is_multiple_of(SLOW_EVERY) {
                    SLOW
                } else {
                    Duration::ZERO
                };
                ShopResponse {
                    after,
                    ..ShopResponse::json("200 OK", json!({ "sku": sku, "left": 12 }))
                }
            }
            _ => {
                let there = "/v1/orders, /v1/payments, /v1/stock/SKU";
                ShopResponse::json("404 Not Found", json!({ "error": format!("use {there}") }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_delays_are_deterministic() {
        let shop = Shop::default();
        let payments: Vec<_> = (0..6).map(|_| shop.answer("GET /v1/payments")).collect();
        let failed: Vec<bool> = payments.iter().map(|it| it.retry_after == Some(1)).collect();
        assert_eq!(failed, [false, false, true, false, false, true]);
        assert_eq!(payments[2].status, "503 Service Unavailable");
        let stock = (0..8).map(|_| shop.answer("GET /v1/stock/SKU-1?x=1").after);
        let slow: Vec<bool> = stock.map(|after| after == SLOW).collect();
        assert_eq!(slow, [false, false, false, true, false, false, false, true]);
    }

    #[test]
    fn reports_unknown_paths_and_methods() {
        let shop = Shop::default();
        assert_eq!(shop.answer("POST /v1/orders").status, "405 Method Not Allowed");
        for target in ["/", "/v1", "/v1/stock/", "/v1/stock/a/b", ""] {
            assert_eq!(shop.answer(&format!("GET {target}")).status, "404 Not Found", "{target}");
        }
    }

    #[test]
    fn an_answer_is_http() {
        let busy = ShopResponse {
            retry_after: Some(1),
            ..ShopResponse::json("503 Busy", json!({ "a": 1 }))
        };
        let text = String::from_utf8(busy.bytes()).expect("text");
        assert_eq!(
            text,
            "HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
             content-length: 7\r\n\r\n{\"a\":1}"
        );
    }
}
