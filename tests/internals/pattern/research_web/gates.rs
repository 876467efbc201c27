//! Where a run does not go: hosts that an allowlist denies, networks of their own, addresses that
//! pretend to be others. The sites count that no request reached them.

use crate::tool::web::cache::Cache;
use serde_json::json;

use super::file::Told;
use crate::support::research::engine;
use crate::support::site::{Does, HTML, Site, answer, page, redirect};
use crate::support::web_research::{FACT, File, GOOD};

const POLICY: &str = "source_denied_policy";
const EXECUTION: &str = "source_denied_execution";

/// A good page.
async fn good() -> Site {
    Site::start(|path, _, _| match path.split('?').next() {
        Some("/good") => page(GOOD),
        _ => Does::Says(answer("404 Not Found", &[HTML], "")),
    })
    .await
}

/// A site that must not be asked.
async fn bystander() -> Site {
    Site::start(|_, _, _| page(GOOD)).await
}

/// One that redirects `/0`, `/1`, … there; what else is asked for is not there.
async fn leading(to: Vec<String>) -> Site {
    Site::start(move |path, _, _| {
        let place = path.strip_prefix('/').and_then(|place| place.parse::<usize>().ok());
        match place.and_then(|place| to.get(place)) {
            Some(to) => redirect(to),
            None => Does::Says(answer("404 Not Found", &[HTML], "")),
        }
    })
    .await
}

#[tokio::test]
async fn redirect_must_pass_both_allowlists() {
    let (never, not_now, good) = (bystander().await, bystander().await, good().await);
    let site = leading(vec![never.url("/x?token=1#y"), not_now.url("/x")]).await;
    let mut file = File::of(&[&site, &good]).finding([
        site.url("/0"),
        site.url("/1"),
        never.url("/found"),
        not_now.url("/found"),
        good.url("/good"),
    ]);
    file.policy.push(not_now.host.clone());
    file.private.extend([never.host.clone(), not_now.host.clone()]);
    let told = file.play().await;
    told.ended_well_with(&good.url("/good"), 5, 4);
    let row = |url: String, reason: &str, location: &str| [url, reason.into(), location.into()];
    let expected = [
        row(site.url("/0"), POLICY, &format!("{}?***", never.url("/x"))),
        row(site.url("/1"), EXECUTION, &not_now.url("/x")),
        row(never.url("/found"), POLICY, ""),
        row(not_now.url("/found"), EXECUTION, ""),
    ];
    assert_eq!(told.denied(), expected);
    assert_eq!(told.skipped(), []);
    assert_eq!(told.reads(), 3, "what is found at a denied host is not even tried");
    assert_eq!((never.connections(), not_now.connections()), (0, 0));
    assert_eq!(site.paths(), ["/0", "/1"]);
}

#[tokio::test]
async fn allowed_redirect_is_cited_at_target() {
    let good = good().await;
    let site = leading(vec![good.url("/good")]).await;
    let file = File::of(&[&site, &good]).finding([site.url("/0"), good.url("/good#part")]);
    let told = file.play().await;
    told.ended_well_after(2, &good.url("/good"), 2, 0);
    assert_eq!(told.skipped(), [(good.url("/good"), "duplicate".to_owned())]);
    let research = told.world.research().expect("research");
    let page = research.sources[0].page.as_ref().expect("a page");
    assert_eq!(page.result_field("redirects"), Some(&json!([good.url("/good")])));
}

/// Listed or not: what is on a network of its own needs a word of its own, however it is written,
/// and whether `robots.txt` is asked for first or not.
#[tokio::test]
async fn private_network_needs_permission() {
    let (inside, good) = (bystander().await, good().await);
    let port = inside.port();
    let hosts = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("127.1:{port}"),
        format!("0x7f000001:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "10.0.0.1".to_owned(),
        "169.254.169.254".to_owned(),
    ];
    for robots in ["", ", robots = true"] {
        let site = leading(hosts.iter().map(|host| format!("http://{host}/x")).collect()).await;
        for redirected in [false, true] {
            let found: Vec<String> = hosts
                .iter()
                .enumerate()
                .map(|(place, host)| match redirected {
                    true => site.url(&format!("/{place}")),
                    false => format!("http://{host}/x"),
                })
                .collect();
            let mut file =
                File::of(&[&site, &good]).finding(found.iter().cloned().chain([good.url("/good")]));
            for list in [&mut file.policy, &mut file.execution] {
                list.extend(hosts.iter().cloned());
            }
            file.read = format!(
                "max_bytes = 9000{}",
                if robots.is_empty() { ", robots = false" } else { robots }
            );
            let run = engine().start(file.launch_with(None));
            let told = Told::of(&run).await;
            told.ended_well_with(&good.url("/good"), hosts.len() + 1, 0);
            let expected: Vec<_> =
                found.into_iter().map(|url| (url, "private_address".to_owned())).collect();
            assert_eq!(told.skipped(), expected, "redirected: {redirected}{robots}");
            assert_eq!(told.retried(), []);
        }
    }
    assert_eq!(inside.connections(), 0);
}

/// What a `Location` may say, `{here}` its own host, `{there}` an allowed one and `{evil}` another;
/// and what becomes of it: read (`ok`), denied with where it led, or skipped.
const LOCATIONS: &[(&str, &str)] = &[
    ("/good", "ok"),
    ("good", "ok"),
    ("./x/../good?q=//{evil}/", "ok"),
    ("//{there}/good", "ok"),
    ("HTTP://{there}/good", "ok"),
    ("http://{here}/good", "ok"),
    ("http://127.1:{here port}/good", "ok"),
    ("http://127.0.0.1.:{here port}/good", "ok"),
    ("http:good", "ok"),
    ("http:/good", "ok"),
    ("http://{here}\\@{evil}/", "not_found"),
    ("http://127.1:{there port}/good", "denied http://127.1:{there port}/good"),
    ("http://0x7f.1:{there port}/good", "denied http://0x7f.1:{there port}/good"),
    ("http://127.0.0.1.:{there port}/good", "denied http://127.0.0.1.:{there port}/good"),
    ("http://%31%32%37.0.0.1:{there port}/good", "denied http://%31%32%37.0.0.1:{there port}/good"),
    ("http://127.0.0.1:80/good", "denied http://127.0.0.1:80/good"),
    ("http://127.0.0.1/good", "denied http://127.0.0.1/good"),
    ("//{evil}/x", "denied http://{evil}/x"),
    ("http://{evil}#@{there}/", "denied http://{evil}/"),
    ("http://{evil}?@{there}/", "denied http://{evil}/?***"),
    ("http://{evil}\\@{there}/", "denied http://{evil}/@{there}/"),
    ("/\\{evil}/x", "denied http://{evil}/x"),
    ("\\\\{evil}\\x", "denied http://{evil}/x"),
    ("/\t/{evil}/x", "denied http://{evil}/x"),
    ("https:/{evil}/x", "denied https://{evil}/x"),
    ("http:\\\\{evil}//{there}/good", "denied http://{evil}//{there}/good"),
    ("http://[::1]:{evil port}/x", "denied http://[::1]:{evil port}/x"),
    ("http://xn--bcher-kva.example/", "denied http://xn--bcher-kva.example/"),
    ("http://me:hunter2@{there}/good", "invalid_url"),
    ("http://{there}@{evil}/", "invalid_url"),
    ("http://@{evil}/", "denied http://{evil}/"),
    ("file:///etc/passwd", "invalid_url"),
    ("javascript:alert(1)", "invalid_url"),
    ("data:text/html,<p>x", "invalid_url"),
    ("ftp://{there}/good", "invalid_url"),
    ("http://", "invalid_url"),
    ("http://[::1/", "invalid_url"),
    ("http://a b/", "invalid_url"),
    ("", "redirect_loop"),
];

#[tokio::test]
async fn redirect_is_resolved_and_judged() {
    let (there, evil) = (good().await, bystander().await);
    for (location, becomes) in LOCATIONS {
        let fill = |text: &str, here: &str| {
            let port = |host: &str| host.rsplit(':').next().expect("a port").to_owned();
            text.replace("{here port}", &port(here))
                .replace("{there port}", there.port())
                .replace("{evil port}", evil.port())
                .replace("{here}", here)
                .replace("{there}", &there.host)
                .replace("{evil}", &evil.host)
        };
        let template = (*location).to_owned();
        let (there_host, evil_host) = (there.host.clone(), evil.host.clone());
        let site = Site::start(move |path, head, _| {
            let lower = head.to_ascii_lowercase();
            let here = lower.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
            let port = |host: &str| host.rsplit(':').next().expect("a port").to_owned();
            let to = template
                .replace("{here port}", &port(here))
                .replace("{there port}", &port(&there_host))
                .replace("{evil port}", &port(&evil_host))
                .replace("{here}", here)
                .replace("{there}", &there_host)
                .replace("{evil}", &evil_host);
            match path.split('?').next() {
                Some("/from") => redirect(&to),
                Some("/good") => page(GOOD),
                _ => Does::Says(answer("404 Not Found", &[HTML], "")),
            }
        })
        .await;
        let mut file =
            File::of(&[&site, &there]).finding([site.url("/from"), there.url("/good?last")]);
        file.private.push(evil.host.clone());
        file.tool = "timeout_s = 20\nidempotent = false".to_owned();
        let told = file.play().await;
        assert_eq!(told.stop(), "success", "{location}");
        let quotes = told.outcome["notes"].as_array().expect("notes");
        assert!(quotes.iter().all(|note| note["quote"] == FACT), "{location}");
        let from = site.url("/from");
        if *becomes == "ok" {
            assert_eq!(told.denied(), [[""; 3]; 0], "{location}");
            let first = told.outcome["notes"][0]["url"].as_str().expect("an address");
            assert!([site.url("/good"), there.url("/good")].contains(&first.to_owned()), "{first}");
        } else if let Some(led) = becomes.strip_prefix("denied ") {
            let led = fill(led, &site.host);
            assert_eq!(told.denied(), [[from, POLICY.to_owned(), led]], "{location}");
            assert_eq!(told.skipped(), [], "{location}");
        } else {
            assert_eq!(told.skipped(), [(from, (*becomes).to_owned())], "{location}");
        }
        let outcome = told.outcome.to_string();
        assert!(!outcome.contains("hunter2"), "{outcome}");
    }
    assert_eq!(evil.connections(), 0);
}

/// The allowlists hold hosts as they stand in addresses; a page that passed them as it was found is
/// not denied for how a URL is written once it is parsed.
#[tokio::test]
async fn cites_page_under_allowed_host() {
    let site = good().await;
    for host in [format!("127.1:{}", site.port()), format!("0x7f.0.0.1:{}", site.port())] {
        let mut file = File::of(&[&site]).finding([format!("http://{host}/good")]);
        (file.policy, file.execution) = (vec![host.clone()], vec![host.clone()]);
        let told = file.play().await;
        told.ended_well_with(&format!("http://{host}/good"), 1, 0);
    }
}

#[tokio::test]
async fn found_addresses_pass_unchanged_or_fail() {
    let site = good().await;
    let (host, port) = (&site.host, site.port());
    let dropped = [
        format!("http://me:hunter2@{host}/good"),
        format!("http://@{host}/good"),
        format!("http:\\\\{host}\\good"),
        format!("http://{host}\\@evil.example/"),
        format!("http://{host} /good"),
        "javascript:alert(1)".to_owned(),
        "file:///etc/passwd".to_owned(),
        "//no.scheme.example/".to_owned(),
        "http://:80/".to_owned(),
    ];
    let denied = [
        format!("http://127.0.0.1.:{port}/good"),
        format!("http://%31%32%37.0.0.1:{port}/good"),
        format!("http://127.1:{port}/good"),
        format!("http://localhost:{port}/good"),
        format!("http://localhost.:{port}/good"),
        "http://127.0.0.1/good".to_owned(),
    ];
    let all = dropped.iter().chain(&denied).cloned();
    let file = File::of(&[&site]).finding(all.chain([format!("HTTP://{host}/good?x#y")]));
    let told = file.play().await;
    assert_eq!(told.stop(), "success", "{}", told.outcome);
    let expected: Vec<_> = dropped.into_iter().map(|url| (url, "invalid_url".to_owned())).collect();
    assert_eq!(told.dropped(), expected);
    let expected: Vec<_> =
        denied.into_iter().map(|url| [url, POLICY.to_owned(), String::new()]).collect();
    assert_eq!(told.denied(), expected);
    assert_eq!(site.paths(), ["/good?x"], "as it was found, its fragment aside");
}

/// A page that is kept was allowed when it came: that is no leave for now.
#[tokio::test]
async fn cached_page_passes_current_allowlists() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = || Some(Cache::at(folder.path().join("pages")));
    let good = good().await;
    let site = leading(vec![good.url("/good")]).await;
    let file = File {
        read: "robots = false # kept".to_owned(),
        ..File::of(&[&site, &good]).finding([site.url("/0")])
    };
    let play = async |file: &File| Told::of(&engine().start(file.launch_with(cache()))).await;
    let kept_s = |told: &Told| {
        let research = told.world.research().expect("research");
        let page = research.sources[0].page.as_ref().expect("a page");
        page.result_field("cached_s").is_some()
    };
    let first = play(&file).await;
    first.ended_well_with(&good.url("/good"), 1, 0);
    let again = play(&file).await;
    again.ended_well_with(&good.url("/good"), 1, 0);
    assert_eq!((kept_s(&first), kept_s(&again)), (false, true));
    assert_eq!((site.connections(), good.connections()), (1, 1));

    let less = File { execution: vec![site.host.clone()], ..file.clone() };
    let told = play(&less).await;
    assert_eq!(told.stop(), "no_reliable_sources");
    assert_eq!(told.denied(), [[site.url("/0"), EXECUTION.to_owned(), good.url("/good")]]);
    let nearer = File { private: vec![site.host.clone()], ..file };
    let told = play(&nearer).await;
    assert_eq!(told.skipped(), [(site.url("/0"), "private_address".to_owned())]);
    assert_eq!(good.connections(), 1, "what is denied is not asked");
}

/// A host behind a flag is on the execution allowlist while the flag is on.
#[tokio::test]
async fn disabled_host_is_not_requested() {
    let (vendor, good) = (bystander().await, good().await);
    let site = leading(vec![vendor.url("/x")]).await;
    let file = File {
        more: format!(
            "[flags.vendor]\ndefault = false\nlabel = \"Vendor\"\n[sources.\"{}\"]\nflag = \"vendor\"\n",
            vendor.host
        ),
        ..File::of(&[&site, &vendor, &good]).finding([
            vendor.url("/x"),
            site.url("/0"),
            good.url("/good"),
        ])
    };
    let told = file.play().await;
    told.ended_well_with(&good.url("/good"), 3, 2);
    let expected = [
        [vendor.url("/x"), EXECUTION.to_owned(), String::new()],
        [site.url("/0"), EXECUTION.to_owned(), vendor.url("/x")],
    ];
    assert_eq!(told.denied(), expected);
    assert_eq!(vendor.connections(), 0);
}

/// What `robots.txt` says: `/closed` is closed unless the site has it otherwise. Rules that stand
/// where the run may not go are a no.
#[tokio::test]
async fn robots_txt_blocks_pages() {
    let evil = bystander().await;
    let away = format!("http://{}/robots.txt", evil.host);
    let rules = "User-agent: *\nDisallow: /closed";
    let says = move |kind: &str| match kind {
        "plain" => Does::Says(answer("200 OK", &["content-type: text/plain"], rules)),
        "moved" => redirect("/rules"),
        "ring" => redirect("/robots.txt"),
        "away" => redirect(&away),
        "missing" => Does::Says(answer("404 Not Found", &[], "")),
        "unchanged" => {
            Does::Says(b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec())
        }
        "endless" => Does::Repeats(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nf\r\nUser-agent: *\r\n\r\n",
            b"14\r\n\nDisallow: /closed\n#\r\n".to_vec(),
        ),
        _ => Does::Says(answer("503 Busy", &["retry-after: 3600"], "")),
    };
    for (kind, open, closed) in [
        ("plain", true, false),
        ("moved", true, false),
        ("endless", true, false),
        ("ring", true, true),
        ("away", false, false),
        ("missing", true, true),
        ("unchanged", true, true),
        ("busy", false, false),
    ] {
        let says = says.clone();
        let site = Site::start(move |path, _, _| match path {
            "/robots.txt" => says(kind),
            "/rules" => Does::Says(answer("200 OK", &[], rules)),
            _ => page(GOOD),
        })
        .await;
        let good = good().await;
        let mut file = File::of(&[&site, &good]).finding([
            site.url("/closed"),
            site.url("/open"),
            good.url("/good"),
        ]);
        file.private.push(evil.host.clone());
        file.read = "max_bytes = 9000".to_owned();
        let told = Told::of(&engine().start(file.launch_with(None))).await;
        assert_eq!(told.stop(), "success", "{kind}");
        let denied = [("/closed", closed), ("/open", open)].into_iter().filter(|(_, read)| !read);
        let denied = denied.map(|(path, _)| (site.url(path), "robots_disallowed".to_owned()));
        assert_eq!(told.skipped(), denied.collect::<Vec<_>>(), "{kind}");
        let read = |path: &str| site.paths().iter().any(|asked| asked == path);
        assert_eq!((read("/open"), read("/closed")), (open, closed), "{kind}");
        assert!(good.paths().contains(&"/good".to_owned()), "{kind}");
        assert_eq!(told.retried(), [], "{kind}");
    }
    assert_eq!(evil.connections(), 0);
}
