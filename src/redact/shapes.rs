//! Secrets that are known by their look, wherever they stand.
//!
//! To add one: one line in [`SHAPES`] with its kind, the text it begins with, and a regular expression for the
//! whole. What begins a secret has to be rare: the expression is tried only where that text stands at the start of
//! a word. Where an expression has a group, the group is the secret; else all of it.

use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::bytes::{Regex, RegexBuilder};

use super::names;
use crate::wire::Span;

/// A secret's look.
#[derive(Debug)]
pub(super) struct Shape {
    /// The kind of secret, as placeholders spell it.
    pub(super) kind: &'static str,
    /// What it begins with, three bytes or more.
    pub(super) prefixes: &'static [&'static str],
    /// The whole of it.
    expression: &'static str,
    /// How many bytes of it stand before the prefix.
    pub(super) lead: usize,
    /// Whether it must have a digit: the prefix also begins ordinary words.
    digit: bool,
}

impl Shape {
    /// Whether a part of what its expression finds is the secret.
    fn has_group(&self) -> bool {
        self.expression.split('(').skip(1).any(|group| !group.starts_with('?'))
    }
}

const fn shape(kind: &'static str, prefixes: &'static [&'static str], expression: &'static str) -> Shape {
    Shape { kind, prefixes, expression, lead: 0, digit: false }
}

const fn with_digit(shape: Shape) -> Shape {
    Shape { digit: true, ..shape }
}

const fn with_lead(lead: usize, shape: Shape) -> Shape {
    Shape { lead, ..shape }
}

/// Every known look; where two fit at one place, that with the longer prefix counts.
pub(super) const SHAPES: &[Shape] = &[
    // Clouds
    shape("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], "A[KSBC]IA[A-Z2-7]{16}|ACCA[A-Z2-7]{16}"),
    shape("aws-session-token", &["IQoJb3JpZ2lu", "FwoGZXIvYXdz"], "(?:IQoJ|FwoG)[A-Za-z0-9/+]{100,}={0,2}"),
    shape("aws-bedrock-key", &["ABSK"], "ABSK[A-Za-z0-9+/]{109,}={0,2}"),
    shape("gcp-api-key", &["AIza"], "AIza[A-Za-z0-9_-]{35}"),
    shape("gcp-oauth-token", &["ya29."], r"ya29\.[A-Za-z0-9_-]{20,}"),
    shape("gcp-client-secret", &["GOCSPX-"], "GOCSPX-[A-Za-z0-9_-]{20,}"),
    shape("gcp-refresh-token", &["1//0"], "1//0[A-Za-z0-9_-]{30,}"),
    with_lead(
        3,
        shape("azure-client-secret", &["7Q~", "8Q~"], "[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"),
    ),
    shape("azure-key", &["AccountKey=", "SharedAccessKey="], "[A-Za-z]+Key=([A-Za-z0-9+/]{32,}={0,2})"),
    with_lead(76, shape("azure-devops-token", &["AZDO"], "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}")),
    shape("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], "do[opr]_v1_[a-f0-9]{64}"),
    shape("databricks-token", &["dapi"], "dapi[a-f0-9]{32}(?:-[0-9])?"),
    shape("vault-token", &["hvs.", "hvb."], r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
    shape("supabase-key", &["sbp_", "sb_secret_"], "sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,})"),
    shape("netlify-token", &["nfp_"], "nfp_[A-Za-z0-9]{36,}"),
    shape("planetscale-token", &["pscale_"], "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    shape("tailscale-key", &["tskey-"], "tskey-[a-z]+-[A-Za-z0-9_-]{10,}"),
    shape(
        "doppler-token",
        &["dp.pt.", "dp.st.", "dp.sa.", "dp.ct."],
        r"dp\.(?:pt|st|sa|ct)\.[A-Za-z0-9_.-]{40,}",
    ),
    // Forges and registries
    shape("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "gh[pousr]_[A-Za-z0-9]{36,255}"),
    shape("github-token", &["github_pat_"], "github_pat_[A-Za-z0-9_]{22,255}"),
    shape(
        "gitlab-token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-", "gloas-"],
        r"gl[a-z]{2,6}-[A-Za-z0-9_.-]{20,300}",
    ),
    shape("bitbucket-token", &["ATBB", "ATCTT3"], "ATBB[A-Za-z0-9]{32}|ATCTT3[A-Za-z0-9_=-]{100,}"),
    shape("atlassian-token", &["ATATT3"], "ATATT3[A-Za-z0-9_=-]{100,}"),
    shape("npm-token", &["npm_"], "npm_[A-Za-z0-9]{36}"),
    shape("pypi-token", &["pypi-"], "pypi-[A-Za-z0-9_-]{50,}"),
    shape("rubygems-key", &["rubygems_"], "rubygems_[a-f0-9]{48}"),
    shape("crates-token", &["cio"], "cio[A-Za-z0-9]{32}"),
    shape("docker-token", &["dckr_pat_", "dckr_oat_"], "dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    shape("buildkite-token", &["bkua_"], "bkua_[a-f0-9]{40}"),
    shape("postman-key", &["PMAK-"], "PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    // Language models
    shape("anthropic-key", &["sk-ant-"], "sk-ant-[A-Za-z0-9_-]{20,}"),
    shape("openrouter-key", &["sk-or-v1-"], "sk-or-v1-[a-f0-9]{64}"),
    with_digit(shape("openai-key", &["sk-"], "sk-[A-Za-z0-9_-]{20,}")),
    shape("groq-key", &["gsk_"], "gsk_[A-Za-z0-9]{40,}"),
    shape("huggingface-token", &["hf_", "api_org_"], "(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    shape("replicate-token", &["r8_"], "r8_[A-Za-z0-9]{37,}"),
    shape("xai-key", &["xai-"], "xai-[A-Za-z0-9]{60,}"),
    shape("perplexity-key", &["pplx-"], "pplx-[A-Za-z0-9]{40,}"),
    shape("nvidia-key", &["nvapi-"], "nvapi-[A-Za-z0-9_-]{50,}"),
    shape("langsmith-key", &["lsv2_"], "lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    with_digit(shape("tavily-key", &["tvly-"], "tvly-[A-Za-z0-9-]{20,}")),
    shape("firecrawl-key", &["fc-"], "fc-[a-f0-9]{32}"),
    shape("elevenlabs-key", &["sk_"], "sk_[a-f0-9]{48}"),
    shape("jina-key", &["jina_"], "jina_[A-Za-z0-9_-]{60,}"),
    shape("pinecone-key", &["pcsk_"], "pcsk_[A-Za-z0-9_]{40,}"),
    shape("context7-key", &["ctx7sk-"], "ctx7sk-[A-Za-z0-9-]{20,}"),
    // Other services
    shape(
        "slack-token",
        &["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        "xox[abeoprs]-[A-Za-z0-9-]{10,}",
    ),
    shape("slack-token", &["xoxe.", "xapp-"], r"(?:xoxe\.xox[bp]|xapp)-[A-Za-z0-9-]{20,}"),
    shape(
        "slack-webhook",
        &["hooks.slack.com/"],
        "hooks\\.slack\\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
    ),
    shape(
        "discord-webhook",
        &["discord.com/api/webhooks/"],
        "discord\\.com/api/webhooks/[0-9]+/([A-Za-z0-9_-]{40,})",
    ),
    shape(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        "[rs]k_(?:live|test)_[A-Za-z0-9]{10,}",
    ),
    shape("webhook-secret", &["whsec_"], "whsec_[A-Za-z0-9+/]{20,}={0,2}"),
    shape("sendgrid-key", &["SG."], r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    shape("mailgun-key", &["key-"], "key-[a-f0-9]{32}"),
    with_lead(8, shape("telegram-token", &[":AA"], "[0-9]{8}:AA[A-Za-z0-9_-]{32,33}")),
    with_lead(9, shape("telegram-token", &[":AA"], "[0-9]{9}:AA[A-Za-z0-9_-]{32,33}")),
    with_lead(10, shape("telegram-token", &[":AA"], "[0-9]{10}:AA[A-Za-z0-9_-]{32,33}")),
    shape("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    shape("linear-key", &["lin_api_"], "lin_api_[A-Za-z0-9]{32,}"),
    shape("notion-token", &["ntn_", "secret_"], "ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}"),
    shape("figma-token", &["figd_"], "figd_[A-Za-z0-9_-]{36,}"),
    shape("sentry-token", &["sntryu_", "sntrys_"], "sntry[us]_[A-Za-z0-9+/=_]{60,}"),
    shape(
        "grafana-token",
        &["glsa_", "glc_"],
        "glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,}={0,2}",
    ),
    shape("newrelic-key", &["NRAK-"], "NRAK-[A-Z0-9]{27}"),
    shape("square-token", &["sq0"], "sq0[a-z]{3}-[A-Za-z0-9_-]{22,}"),
    shape(
        "hubspot-token",
        &["pat-na1-", "pat-eu1-"],
        "pat-(?:na|eu)1-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
    ),
    // Forms of no one service
    shape(
        "jwt",
        &["eyJ"],
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}",
    ),
    shape("private-key", &["-----BEGIN "], PRIVATE_KEY),
    shape(
        "private-key",
        &["PuTTY-User-Key-File-"],
        r"(?s)PuTTY-User-Key-File-\d:.*?(?:Private-MAC: [a-f0-9]+|\z)",
    ),
    shape("private-key", &["AGE-SECRET-KEY-1"], "AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    with_digit(shape("bearer", &["Bearer ", "bearer ", "BEARER "], "(?i:bearer) +([A-Za-z0-9._~+/-]{8,}=*)")),
    shape("basic", &["Basic ", "basic "], "(?i:basic) +([A-Za-z0-9+/]{8,}={0,2})"),
];

/// A block whose end is missing reaches as far as it may be one; code that only asks for one has no body.
const PRIVATE_KEY: &str = concat!(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s,:.()\\-]{16,}?-----END [A-Z0-9 ]*-----|",
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s,:.()\\-]{16,}",
);

/// What looks like a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The secret, unless something else about it tells that it is none.
    pub(super) secret: Option<Span>,
    /// Behind all that was read of it.
    pub(super) end: usize,
}

/// What has the look `SHAPES[index]` and begins at `at` (`lead` bytes before its prefix), if anything does.
pub(super) fn find(index: usize, text: &[u8], at: usize) -> Option<Look> {
    let shape = &SHAPES[index];
    let rest = text.get(at..)?;
    let begins =
        |prefix: &&str| rest.get(shape.lead..).is_some_and(|rest| rest.starts_with(prefix.as_bytes()));
    let begins_word = match shape.lead {
        0 => begins_word(text, at),
        _ => at == 0 || !text[at - 1].is_ascii_digit(),
    };
    if !begins_word || !shape.prefixes.iter().any(begins) {
        return None;
    }
    let found = compiled(index).captures(rest)?;
    let whole = found.get(0)?;
    let secret = found.get(1).unwrap_or(whole);
    let goes_on = rest.get(whole.end()).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let fits = !goes_on
        && (!shape.digit || secret.as_bytes().iter().any(u8::is_ascii_digit))
        && (shape.kind != "basic" || password_of_basic(secret.as_bytes()).is_some());
    // A sentence may end there.
    let end = secret.end() - secret.as_bytes().iter().rev().take_while(|byte| **byte == b'.').count();
    let secret = fits.then(|| Span::new(at + secret.start(), at + end));
    Some(Look { secret, end: at + whole.end() })
}

/// The looks whose prefixes begin with one of this look's and go on.
pub(super) fn longer(index: usize) -> &'static [usize] {
    static LONGER: LazyLock<Vec<Vec<usize>>> = LazyLock::new(|| {
        let goes_on = |of: &Shape, other: &Shape| {
            let pairs =
                of.prefixes.iter().flat_map(|short| other.prefixes.iter().map(move |long| (short, long)));
            of.lead == other.lead
                && pairs.into_iter().any(|(short, long)| long.len() > short.len() && long.starts_with(short))
        };
        let of = |of: &Shape| (0..SHAPES.len()).filter(|&other| goes_on(of, &SHAPES[other])).collect();
        SHAPES.iter().map(of).collect()
    });
    &LONGER[index]
}

/// Whether a word can begin at `at`: a letter before it may belong to an escape such as `\n`.
fn begins_word(text: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|before| text[before]) {
        None => true,
        Some(before) if before.is_ascii_alphabetic() => {
            at >= 2 && text[at - 2] == b'\\' && parts_words(before)
        }
        Some(before) => parts_words(before),
    }
}

/// Whether a byte can stand right before a secret: a sign, a blank, the end of another script's character, or the
/// letter of an escape such as `\n`.
pub(super) const fn parts_words(byte: u8) -> bool {
    match byte {
        b'_' | b'-' => false,
        b'\t' | b'\n' | b'\r' | b' ' | 0x80..=0xbf => true,
        b'n' | b't' | b'r' | b'b' | b'f' => true,
        _ => byte.is_ascii_punctuation(),
    }
}

/// Whether secrets of this kind are known by their look alone, wherever they stand: no name gives it, and nothing that
/// has to stand around them.
pub(crate) fn is_of_looks_alone(kind: &str) -> bool {
    let of_kind = || SHAPES.iter().filter(|shape| shape.kind == kind);
    of_kind().next().is_some() && !of_kind().any(Shape::has_group) && !names::gives(kind)
}

/// Whether all of a text looks like a secret.
pub(crate) fn is_look(text: &[u8]) -> bool {
    let is_all = |secret: Span| secret == Span::new(0, text.len());
    (0..SHAPES.len()).any(|index| find(index, text, 0).and_then(|look| look.secret).is_some_and(is_all))
}

/// An expression is compiled when it is first needed: most never are.
fn compiled(index: usize) -> &'static Regex {
    static COMPILED: [OnceLock<Regex>; SHAPES.len()] = [const { OnceLock::new() }; SHAPES.len()];
    COMPILED[index].get_or_init(|| {
        let anchored = format!("^(?:{})", SHAPES[index].expression);
        RegexBuilder::new(&anchored).unicode(false).build().expect("every expression of the table is tested")
    })
}

/// The password in the credentials of HTTP's Basic scheme: base64 of `user:password`.
pub(super) fn password_of_basic(credentials: &[u8]) -> Option<Vec<u8>> {
    let mut text = BASIC.decode(credentials).ok()?;
    let colon = text.iter().position(|byte| *byte == b':')?;
    let printable = text.iter().all(|byte| !byte.is_ascii_control());
    printable.then(|| text.split_off(colon + 1))
}

/// Padding may be missing.
const BASIC: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::super::finder::{self, Secret};
    use super::super::secrets::Secrets;
    use super::*;

    /// Kind and place of what is found first in a text.
    fn found_at(text: &str) -> Option<(&'static str, Span)> {
        let found = finder::find(&Secrets::new(&[]), text.as_bytes()).finds.into_iter().next()?;
        match found.secret {
            Secret::New(kind, _) => Some((kind, found.span)),
            Secret::Known(_) => None,
        }
    }

    /// Kind and secret of what is found in `text`, wherever that stands.
    fn found(text: &str) -> Option<(&'static str, &str)> {
        let found = found_at(text);
        for before in [" ", "  ", "see \""] {
            let again = found_at(&format!("{before}{text}"));
            assert_eq!(again, found.map(|(kind, span)| (kind, span.shift(before.len()))), "{before}{text}");
        }
        found.map(|(kind, span)| (kind, &text[span.start..span.end]))
    }

    #[test]
    fn kinds_that_names_or_surroundings_give_are_not_of_looks_alone() {
        for kind in ["github-token", "jwt", "openai-key", "anthropic-key", "aws-access-key", "stripe-key"] {
            assert!(is_of_looks_alone(kind), "{kind}");
        }
        for kind in [
            "password",
            "secret",
            "token",
            "env",
            "url-password",
            "private-key",
            "api-key",
            "bearer",
            "basic",
            "azure-key",
            "slack-webhook",
            "discord-webhook",
            "signature",
            "",
        ] {
            assert!(!is_of_looks_alone(kind), "{kind}");
        }
        for (index, shape) in SHAPES.iter().enumerate().filter(|(_, shape)| shape.kind != "private-key") {
            assert_eq!(shape.has_group(), compiled(index).captures_len() > 1, "{}", shape.kind);
        }
        for (text, is_one) in [
            ("AKIAIOSFODNN7EXAMPLE", true),
            (" AKIAIOSFODNN7EXAMPLE", false),
            ("AKIAIOSFODNN7EXAMPLE ", false),
            ("text", false),
            ("", false),
        ] {
            assert_eq!(is_look(text.as_bytes()), is_one, "{text}");
        }
    }

    #[test]
    fn every_expression_compiles_and_begins_with_its_prefixes() {
        for (index, shape) in SHAPES.iter().enumerate() {
            compiled(index);
            assert!(shape.prefixes.iter().all(|prefix| prefix.len() >= 3), "{}", shape.kind);
        }
    }

    #[test]
    fn known_looks_are_found_and_named() {
        let run = |length: usize| "aB3dE5gH7jK9mN1pQ".chars().cycle().take(length).collect::<String>();
        let hex = |length: usize| "0a1b2c3d4e5f6789".chars().cycle().take(length).collect::<String>();
        for (kind, secret) in [
            ("aws-access-key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
            ("gcp-api-key", format!("AIza{}", run(35))),
            ("azure-client-secret", format!("abc8Q~{}", run(34))),
            ("github-token", format!("ghp_{}", run(36))),
            ("github-token", format!("github_pat_{}", run(82))),
            ("gitlab-token", format!("glpat-{}", run(20))),
            ("npm-token", format!("npm_{}", run(36))),
            ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", run(60))),
            ("anthropic-key", format!("sk-ant-api03-{}", run(95))),
            ("anthropic-key", format!("sk-ant-admin01-{}AA", run(93))),
            ("openrouter-key", format!("sk-or-v1-{}", hex(64))),
            ("openai-key", format!("sk-or-v1-{}", run(40))),
            ("supabase-key", format!("sb_secret_{}", run(31))),
            ("elevenlabs-key", format!("sk_{}", hex(48))),
            ("openai-key", format!("sk-proj-{}", run(60))),
            ("openai-key", format!("sk-{}", run(48))),
            ("huggingface-token", format!("hf_{}", run(34))),
            ("slack-token", format!("xoxb-123456789012-{}", run(24))),
            ("stripe-key", format!("sk_live_{}", run(24))),
            ("sendgrid-key", format!("SG.{}.{}", run(22), run(43))),
            ("telegram-token", format!("1234567890:AA{}", run(33))),
            ("databricks-token", format!("dapi{}", hex(32))),
            ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.SflKxwRJSMeKKF2QT4fw".to_owned()),
            (
                "private-key",
                "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----".to_owned(),
            ),
            ("private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE".to_owned()),
        ] {
            assert_eq!(found(&secret), Some((kind, secret.as_str())));
        }
        assert_eq!(found(r"\nsk_test_aB3dE5gH7j").map(|found| found.0), Some("stripe-key"));
        assert_eq!(found("Bearer abc123def456"), Some(("bearer", "abc123def456")));
        assert_eq!(found("Basic dXNlcjpodW50ZXIy"), Some(("basic", "dXNlcjpodW50ZXIy")));
        assert_eq!(
            found("https://hooks.slack.com/services/T000/B000/XXXXXXXXXXXX").map(|f| f.1),
            Some("T000/B000/XXXXXXXXXXXX")
        );
    }

    #[test]
    fn what_only_begins_like_one_is_none() {
        for text in [
            "AKIAIOSFODNN7EXAMPLEX",
            "XAKIAIOSFODNN7EXAMPLE",
            "desk_test_aB3dE5gH7j",
            "sk-learn-estimator-checkable",
            "Bearer authentication is used",
            "Bearer realm=\"MCP Server\", error=\"invalid_token\"",
            "Bearer resource_metadata=\"https://example.com/\"",
            "Basic authentication",
            "Basic dXNlcm5hbWU=",
            "eyJ.eyJ.x",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "key.indexOf(\"-----BEGIN PRIVATE KEY-----\") !== 0",
            "npm_config_registry",
            "key-value-store",
            "ghp_short",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
