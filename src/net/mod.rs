//! The HTTP client, built on first use and shared. It has no retries and no timeouts: those are up
//! to the caller. Dropping a future cancels its request.
//!
//! - TLS is rustls with ring. Roots are the platform's, so that a company's own authority and
//!   `SSL_CERT_FILE` work. They are read on the first `https` request, never for a local endpoint.
//! - HTTP/1.1: one connection per call in flight, so a broken connection fails one call only, and
//!   the server notices a dropped call at once.
//! - Bodies are read up to a size limit, and decompressed, whether that was requested or not.
//! - Addresses are checked where names are resolved, so the checked address is the one that is
//!   connected to. No redirects; no proxy from the environment unless requested.

pub(crate) mod decoding;
pub mod error;
pub mod json_rpc;
pub mod proxy;
pub mod redact;
pub mod sse;

use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use hyper::body::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Request, Response, Url};
use url::Host;

use self::decoding::BodyDecoder;
use self::proxy::Proxies;

use crate::base::private_host::is_public;

pub use self::error::NetError;
use self::error::{retry_after, retry_after_ms};
pub use self::proxy::ProxyMode;
pub use self::redact::{Redactor, Secret};

/// The HTTP client. Clones share its connections.
#[derive(Clone)]
pub struct Http {
    inner: Arc<HttpClients>,
}

struct HttpClients {
    /// The proxies of the mode; if this is an error, no request is sent.
    proxies: Result<Proxies, NetError>,
    reach: Reach,
    /// The name of the client in its requests; `None`: they are those of another program.
    agent: Option<&'static str>,
    /// For `http` URLs: has no root certificates, because it needs none.
    plain: OnceLock<Result<reqwest::Client, NetError>>,
    /// For `https` URLs, and for proxies.
    tls: OnceLock<Result<reqwest::Client, NetError>>,
}

impl Http {
    /// A client with this proxy setting. It is built on first use; the proxies of the environment are
    /// read now.
    pub fn new(via: ProxyMode) -> Self {
        Self::create(via, Reach::Anywhere, Some(AGENT))
    }

    /// A client for requests of other programs, which keep their names.
    pub(crate) fn forwarding(via: ProxyMode) -> Self {
        Self::create(via, Reach::Anywhere, None)
    }

    /// A client without a proxy, limited to these addresses. (A proxy would resolve names itself,
    /// without our check.)
    pub fn direct(reach: Reach) -> Self {
        Self::create(ProxyMode::Direct, reach, Some(AGENT))
    }

    fn create(via: ProxyMode, reach: Reach, agent: Option<&'static str>) -> Self {
        let (plain, tls) = (OnceLock::new(), OnceLock::new());
        let proxies = Proxies::of_mode(&via, |name| std::env::var(name))
            .map_err(|why| NetError::UnusableProxy { why });
        Self { inner: Arc::new(HttpClients { proxies, reach, agent, plain, tls }) }
    }

    /// Sends `body` to the target. The response's body is still to be read.
    ///
    /// # Errors
    /// Any error of the network. A response with an error status is not an error here, and the size of
    /// its body is not checked yet.
    pub async fn post(&self, to: &RequestTarget, body: Vec<u8>) -> Result<HttpResponse, NetError> {
        self.send(Method::POST, to, Some(body)).await
    }

    /// Sends a GET request to the target.
    ///
    /// # Errors
    /// Same as [`Http::post`].
    pub async fn get(&self, from: &RequestTarget) -> Result<HttpResponse, NetError> {
        self.send(Method::GET, from, None).await
    }

    /// Sends a request with any method.
    ///
    /// # Errors
    /// Same as [`Http::post`].
    pub async fn send(
        &self,
        method: Method,
        to: &RequestTarget,
        body: Option<Vec<u8>>,
    ) -> Result<HttpResponse, NetError> {
        self.inner.reach.check(&to.url).map_err(|refused| {
            let (host, why) = (to.host().to_owned(), refused.to_string());
            NetError::OutOfReach { host, why }
        })?;
        let mut request = Request::new(method, to.url.clone());
        *request.body_mut() = body.map(Into::into);
        // With room for those that the client adds: a clone would be copied as soon as it does.
        let headers = request.headers_mut();
        headers.reserve(to.headers.len() + ADDED_HEADERS);
        for (name, value) in &to.headers {
            headers.append(name, value.clone());
        }
        let client = self.client(&to.url)?;
        send_together().await;
        match client.execute(request).await {
            Ok(response) => {
                let decoder = BodyDecoder::of(response.headers());
                let host = Arc::clone(&to.host);
                Ok(HttpResponse { response, decoder, peeked: None, host })
            }
            Err(error) => {
                let error = NetError::from_reqwest(&error, &to.host);
                let proxy = self.inner.proxies.as_ref().ok().and_then(|it| it.proxy_of(&to.url));
                Err(match proxy {
                    Some(proxy) => error.through(&proxy),
                    None => error,
                })
            }
        }
    }

    /// Sends a request of another program, without headers of our own. The body of the response is not decompressed.
    ///
    /// # Errors
    /// Same as [`Http::post`].
    pub(crate) async fn forward(&self, request: Request) -> Result<Response, NetError> {
        let url = request.url().clone();
        let sent = self.client(&url)?.execute(request).await;
        sent.map_err(|error| {
            let error = NetError::from_reqwest(&error, &host_of(&url));
            let proxy = self.inner.proxies.as_ref().ok().and_then(|it| it.proxy_of(&url));
            match proxy {
                Some(proxy) => error.through(&proxy),
                None => error,
            }
        })
    }

    fn client(&self, url: &Url) -> Result<&reqwest::Client, NetError> {
        let proxies = self.inner.proxies.as_ref().map_err(Clone::clone)?;
        // A proxy may use TLS even for a URL without it.
        let tls = url.scheme() != "http" || !proxies.is_empty();
        let cell = if tls { &self.inner.tls } else { &self.inner.plain };
        cell.get_or_init(|| build(proxies, &self.inner, tls)).as_ref().map_err(Clone::clone)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// The name of the program in its requests.
const AGENT: &str = concat!("roundtable/", env!("CARGO_PKG_VERSION"));

fn build(proxies: &Proxies, of: &HttpClients, tls: bool) -> Result<reqwest::Client, NetError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that a provider is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        // With a limit above 0 the client copies each request before it sends it, although it never uses
        // the copy.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .referer(false)
        .http1_only()
        .tcp_nodelay(true)
        // Detects a vanished peer after a minute; timeouts are up to the caller.
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(90))
        .pool_max_idle_per_host(IDLE_PER_HOST);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    {
        builder = builder.tcp_user_timeout(None);
    }
    if let Some(agent) = of.agent {
        builder = builder.user_agent(agent);
    }
    if of.reach == Reach::Internet {
        builder = builder.dns_resolver(PublicResolver);
    }
    if !tls {
        builder = builder.tls_certs_only([]);
    }
    builder = proxies.set_in(builder).map_err(|error| client_error(&error))?;
    builder.build().map_err(|error| client_error(&error))
}

/// Headers that the client adds to those of a target: what it accepts, its name and the length.
const ADDED_HEADERS: usize = 3;

/// Idle connections kept for each host: as many calls as the largest run has in flight.
const IDLE_PER_HOST: usize = 64;

fn client_error(error: &reqwest::Error) -> NetError {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    NetError::Client { why: innermost.to_string() }
}

/// Target of requests, built once: the URL and the headers.
#[derive(Clone)]
pub struct RequestTarget {
    url: Url,
    host: Arc<str>,
    headers: HeaderMap,
}

impl RequestTarget {
    /// A target with only the header `Host`. Otherwise the client would make this header for each request.
    pub fn new(url: Url) -> Self {
        let host = host_of(&url);
        // A URL without a host is refused when it is sent.
        let header = HeaderValue::from_str(&host).ok().filter(|value| !value.is_empty());
        let headers = header.map(|value| (HOST, value)).into_iter().collect();
        Self { url, host: host.into(), headers }
    }

    /// Sets a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Host of the URL, with the port if it is not the scheme's default.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// URL of the target.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Debug for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("host", &self.host).finish_non_exhaustive()
    }
}

/// Host of a URL, with the port if it is not the scheme's default; nothing else of the URL.
pub fn host_of(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => String::new(),
    }
}

/// A response whose body is still to be read. Dropping it unread closes its connection.
#[derive(Debug)]
pub struct HttpResponse {
    response: Response,
    /// Decompresses the body, if it is compressed.
    decoder: Option<BodyDecoder>,
    /// A piece returned by [`HttpResponse::peek`] and not yet by [`HttpResponse::chunk`].
    peeked: Option<Bytes>,
    host: Arc<str>,
}

impl HttpResponse {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Value of `Location`. Servers send it in UTF-8, which [`HttpResponse::header`] does not accept.
    pub fn location(&self) -> Option<&str> {
        let value = self.response.headers().get(LOCATION)?;
        std::str::from_utf8(value.as_bytes()).ok()
    }

    /// A header's value, if it is ASCII text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether the body has this media type, by the header.
    pub fn has_media_type(&self, media_type: &str) -> bool {
        let Some(value) = self.response.headers().get(CONTENT_TYPE) else { return false };
        let bare = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        bare.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes())
    }

    /// Length of the body according to the header, before it is decompressed.
    pub fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Whether the body is compressed in a way that is not supported, so that reading it fails.
    pub fn is_unreadable(&self) -> bool {
        self.decoder.as_ref().is_some_and(|decoder| !decoder.is_supported())
    }

    /// The wait that the server asks for: `retry-after-ms`, else `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        let millis = self.header("retry-after-ms").and_then(retry_after_ms);
        millis.or_else(|| retry_after(self.header("retry-after"), self.header("date")))
    }

    /// Whether the server says that a retry makes sense, or does not: `x-should-retry`.
    pub fn should_retry(&self) -> Option<bool> {
        match self.header("x-should-retry")?.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`NetError::Broken`], [`NetError::NotHttp`] for invalid chunks, or [`NetError::Encoding`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        if let Some(held) = self.peeked.take() {
            return Ok(Some(held));
        }
        loop {
            if let Some(decoder) = &mut self.decoder
                && let Some(bytes) =
                    decoder.next().map_err(|error| NetError::from_decoder(&error, &self.host))?
            {
                return Ok(Some(bytes));
            }
            let chunk = self.response.chunk().await;
            let chunk = chunk.map_err(|error| NetError::from_reqwest(&error, &self.host))?;
            match (&mut self.decoder, chunk) {
                (None, chunk) => return Ok(chunk),
                (Some(decoder), Some(chunk)) => decoder.push(chunk),
                (Some(decoder), None) => {
                    let last = decoder.finish();
                    return last.map_err(|error| NetError::from_decoder(&error, &self.host));
                }
            }
        }
    }

    /// The piece that [`HttpResponse::chunk`] returns next; empty at the body's end.
    ///
    /// # Errors
    /// Same as [`HttpResponse::chunk`].
    pub async fn peek(&mut self) -> Result<&[u8], NetError> {
        if self.peeked.is_none() {
            self.peeked = self.chunk().await?;
        }
        Ok(self.peeked.as_deref().unwrap_or_default())
    }

    /// Releases a response whose relevant part has been read. The end of the body has often arrived
    /// already, and the connection can be reused. Else a background task waits for it, but not for
    /// long: a server that keeps its stream open costs the connection, never the caller's time.
    pub async fn release(mut self) {
        let rest = async move {
            let mut left = RELEASE_BYTES;
            while let Ok(Some(bytes)) = self.chunk().await {
                let Some(less) = left.checked_sub(bytes.len()) else { return };
                left = less;
            }
        };
        let mut rest = Box::pin(rest);
        for _ in 0..RELEASE_YIELDS {
            if rest.as_mut().now_or_never().is_some() {
                return yield_to_pool().await;
            }
            tokio::task::yield_now().await;
        }
        tokio::spawn(tokio::time::timeout(RELEASE_TIMEOUT, rest));
    }
}

/// Yields once, so that other ready tasks prepare their requests before this one is sent. With many runs at
/// once, the code of each step then stays in the processor's cache, and a server is woken less often; a
/// single run loses some microseconds at most.
async fn send_together() {
    tokio::task::yield_now().await;
}

/// Yields once, so that the connection's task can return it to the pool after its body was read. A
/// caller that sends the next request at once then reuses the connection.
async fn yield_to_pool() {
    tokio::task::yield_now().await;
}

/// How often to yield to the connection's task for the end of a body.
const RELEASE_YIELDS: usize = 3;
/// Most bytes that are read only to reuse a connection.
const RELEASE_BYTES: usize = 64 << 10;
/// Longest wait for the end of a body, only to reuse its connection.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(250);

/// Most bytes allocated in advance: a `Content-Length` is only a claim.
const MAX_PREALLOCATED: usize = 256 << 10;

impl HttpResponse {
    /// The whole body, at most `cap` bytes. A body that arrives in one piece is not copied.
    ///
    /// # Errors
    /// [`NetError::TooLarge`] as soon as the size is known, else as [`HttpResponse::chunk`].
    pub async fn collect(mut self, cap: usize) -> Result<Bytes, NetError> {
        let announced = self.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > cap) {
            return Err(NetError::TooLarge { cap });
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        check_size(first.len(), cap)?;
        let mut whole = Vec::new();
        while let Some(more) = self.chunk().await? {
            if whole.is_empty() {
                whole.reserve(
                    announced.unwrap_or(0).min(MAX_PREALLOCATED).max(first.len() + more.len()),
                );
                whole.extend_from_slice(&first);
            }
            check_size(whole.len() + more.len(), cap)?;
            whole.extend_from_slice(&more);
        }
        yield_to_pool().await;
        Ok(if whole.is_empty() { first } else { whole.into() })
    }
}

fn check_size(length: usize, cap: usize) -> Result<(), NetError> {
    if length > cap { Err(NetError::TooLarge { cap }) } else { Ok(()) }
}

/// The first `most` bytes of a body, and whether it was cut there or by an error. For the text of
/// an error message, where half a body is better than none.
pub async fn read_prefix(answer: HttpResponse, most: usize) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    let is_cut = fill(answer, most, &mut read).await.unwrap_or(true);
    (read, is_cut)
}

/// The first `most` bytes of a body, and whether more would follow.
///
/// # Errors
/// Same as [`HttpResponse::chunk`].
pub async fn read_within(answer: HttpResponse, most: usize) -> Result<(Vec<u8>, bool), NetError> {
    let mut read = Vec::new();
    let is_cut = fill(answer, most, &mut read).await?;
    Ok((read, is_cut))
}

async fn fill(mut answer: HttpResponse, most: usize, read: &mut Vec<u8>) -> Result<bool, NetError> {
    while let Some(more) = answer.chunk().await? {
        let room = most - read.len();
        if more.len() > room {
            read.extend_from_slice(more.get(..room).unwrap_or(&more));
            return Ok(true);
        }
        read.extend_from_slice(&more);
    }
    yield_to_pool().await;
    Ok(false)
}

/// Which addresses requests may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Any address.
    #[default]
    Anywhere,
    /// Public addresses only: not this machine, no private network.
    Internet,
}

/// An address that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfReach(pub(crate) IpAddr);

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a public address", self.0)
    }
}

impl StdError for OutOfReach {}

impl Reach {
    /// Checks a literal IP address, which is not resolved.
    pub(crate) fn check(self, url: &Url) -> Result<(), OutOfReach> {
        let written: IpAddr = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        match self {
            Self::Internet if !is_public(written) => Err(OutOfReach(written)),
            Self::Internet | Self::Anywhere => Ok(()),
        }
    }
}

/// Resolves names to public addresses only.
pub(crate) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (good, bad): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| is_public(address.ip()));
            match bad.first() {
                Some(refused) if good.is_empty() => Err(OutOfReach(refused.ip()).into()),
                _ => Ok(Box::new(good.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_literal_addresses_in_every_form() {
        let check = |url: &str| Reach::Internet.check(&url.parse().expect(url)).is_ok();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://[::1]:80/",
            "http://[::ffff:192.168.0.1]/",
            "http://[::ffff:8.8.8.8]/",
            "http://[64:ff9b:1::7f00:1]/",
            "http://[2001:0:7f00:1::]/",
            "http://169.254.169.254/latest",
        ] {
            assert!(!check(url), "{url}");
            assert!(Reach::Anywhere.check(&url.parse().expect(url)).is_ok());
        }
        assert!(check("http://8.8.8.8/") && check("http://a.example/"));
    }
}
