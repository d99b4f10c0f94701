//! Names of members, variables, headers and parameters whose values are secrets.
//!
//! A name is compared without its case and separators, and by its end: `github_token`, `GITHUB-TOKEN` and
//! `githubToken` all end in `token`. To add a name: one line in [`NAMES`]; to spare one: a line in [`PROTOCOL`].

use super::{ordinary, rules::SHORTEST};

/// So much of a name's end is looked at (separators not counted).
const LONGEST: usize = 64;

/// Digits that people type to prove who they are.
const SHORTEST_PIN: usize = 4;
const LONGEST_PIN: usize = 12;

/// A kind of name that keeps secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SecretName {
    /// Its words, in lower case, parted by blanks.
    pub(super) words: &'static str,
    /// The kind of secret, as placeholders spell it.
    pub(super) kind: &'static str,
    /// Which names it means.
    pub(super) end: End,
    /// Whether strings in an object below it are secrets too.
    pub(super) deep: bool,
}

impl SecretName {
    /// Whether what stands under the name may be the secret itself: the name may also be that of a folder (`PWD`), of the
    /// file that keeps it, of a package or of a column.
    pub(super) fn may_hold(&self, value: &[u8]) -> bool {
        if ordinary::describes(value) {
            return false;
        }
        let is_path = [&b"/"[..], b"~/", b"./", b"../"].iter().any(|start| value.starts_with(start))
            || matches!(value, [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
        let is_number = value.iter().all(u8::is_ascii_digit);
        match (self.words, self.kind) {
            ("pwd", _) => !is_path,
            // Of a chip, or on a map.
            ("pin", _) => is_number && (SHORTEST_PIN..=LONGEST_PIN).contains(&value.len()),
            // How often something is done.
            ("pass", _) => !is_number || value.len() >= SHORTEST_PIN,
            // Base64 may begin like a path, and has no dots.
            (_, "private-key" | "credential") => !(is_path && value.contains(&b'.')),
            _ => true,
        }
    }

    /// Whether what stands under the name is often no secret at all.
    pub(super) fn may_be_none(&self) -> bool {
        self.words == "pin"
    }

    /// Whether a number under the name may be the secret: passwords are typed, and tokens are long. Others count
    /// something.
    pub(super) fn may_hold_number(&self, number: &[u8]) -> bool {
        let is_typed = matches!(self.kind, "password" | "secret" | "otp");
        let shortest = if is_typed { SHORTEST_PIN } else { SHORTEST };
        number.iter().all(u8::is_ascii_digit) && number.len() >= shortest && self.may_hold(number)
    }
}

/// Which names a [`SecretName`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every name that ends in its words.
    Any,
    /// Only the name that is its words.
    Whole,
}

const fn any(words: &'static str, kind: &'static str) -> SecretName {
    SecretName { words, kind, end: End::Any, deep: false }
}

const fn whole(words: &'static str, kind: &'static str) -> SecretName {
    SecretName { words, kind, end: End::Whole, deep: false }
}

const fn deep(words: &'static str, kind: &'static str) -> SecretName {
    SecretName { words, kind, end: End::Any, deep: true }
}

/// Names that keep secrets; the first that fits counts.
pub(super) const NAMES: &[SecretName] = &[
    any("password", "password"),
    deep("passwords", "password"),
    any("passwd", "password"),
    any("password hash", "password"),
    any("passphrase", "password"),
    any("pass phrase", "password"),
    any("passcode", "password"),
    any("pwd", "password"),
    any("db pass", "password"),
    any("smtp pass", "password"),
    any("mail pass", "password"),
    any("user pass", "password"),
    any("admin pass", "password"),
    any("proxy pass", "password"),
    any("ssh pass", "password"),
    any("key pass", "password"),
    any("store pass", "password"),
    any("secret", "secret"),
    deep("secrets", "secret"),
    any("secret key", "secret"),
    any("secret access key", "secret"),
    any("secret value", "secret"),
    any("secret string", "secret"),
    any("token", "token"),
    any("token value", "token"),
    whole("bearer", "token"),
    any("oauth2 bearer", "token"),
    deep("access tokens", "token"),
    deep("refresh tokens", "token"),
    any("api key", "api-key"),
    deep("api keys", "api-key"),
    any("access key", "api-key"),
    any("account key", "api-key"),
    any("auth key", "api-key"),
    any("shared key", "api-key"),
    any("subscription key", "api-key"),
    any("functions key", "api-key"),
    any("private key", "private-key"),
    any("signing key", "private-key"),
    any("encryption key", "private-key"),
    any("master key", "private-key"),
    any("hmac key", "private-key"),
    any("ssh key", "private-key"),
    whole("authorization", "authorization"),
    whole("proxy authorization", "authorization"),
    whole("http authorization", "authorization"),
    any("cookie", "cookie"),
    deep("cookies", "cookie"),
    deep("credential", "credential"),
    deep("credentials", "credential"),
    any("code verifier", "oauth"),
    any("oauth verifier", "oauth"),
    any("client assertion", "oauth"),
    any("saml response", "oauth"),
    whole("otp", "otp"),
    whole("totp", "otp"),
    any("mfa code", "otp"),
    whole("pin", "otp"),
];

/// A flag of this name has a secret, and a member or variable of it has not.
static PASS: SecretName = whole("pass", "password");

/// What npm keeps under `_auth`: the credentials of HTTP's Basic scheme.
pub(super) static NPM_AUTH: SecretName = whole("auth", "authorization");

/// Tokens that are none: names that end like one above and belong to the protocol, to paging, or to language models.
const PROTOCOL: &[&str] = &[
    "progress token",
    "page token",
    "next token",
    "continuation token",
    "cursor token",
    "sync token",
    "delta token",
    "resume token",
    "cancel token",
    "cancellation token",
    "idempotency token",
    "start token",
    "stop token",
    "end token",
    "eos token",
    "bos token",
    "pad token",
    "unk token",
    "sep token",
    "cls token",
    "mask token",
    "per token",
];

/// Parameters of addresses that are secret beside [`NAMES`]: the signatures of signed addresses.
const SIGNATURES: &[&str] =
    &["sig", "signature", "oauth signature", "x amz signature", "x goog signature", "x amz credential"];

/// Fields that are secret in an address, a form or an object which speaks OAuth.
const OAUTH: &[&str] = &[
    "code",
    "state",
    "nonce",
    "code challenge",
    "login hint",
    "id token hint",
    "assertion",
    "device code",
    "user code",
    "auth req id",
];

/// Fields that tell an address or a form which speaks OAuth.
const OAUTH_SIGNS: &[&str] =
    &["client id", "redirect uri", "response type", "grant type", "iss", "code verifier", "client assertion"];

/// Fields that tell an object which speaks OAuth: in one with a `client_id`, a `code` may be anything.
const GRANTS: &[&str] = &["grant type", "code verifier", "client assertion", "verification uri"];

/// Fields that stand beside a granted `code` in an answer, and beside other codes as well.
const BESIDE_CODE: &[&str] = &["state", "scope", "session state", "iss", "client id"];

/// Fields that stand beside a granted `code` and seldom beside others.
const NEAR_CODE: &[&str] = &["redirect uri", "session state"];

/// How the signs are spelled that are looked for in any text; the others stand beside one of them.
pub(super) const SPELLED_SIGNS: &[&str] =
    &["grant_type", "grantType", "grant-type", "redirect_uri", "response_type", "verification_uri"];

/// Members that tell of an object below a plural name that it describes a secret: what else it has is none of it, unless
/// its own name says so.
const DESCRIBES: &[&str] = &[
    "id",
    "uuid",
    "name",
    "display name",
    "description",
    "label",
    "created",
    "created at",
    "updated at",
    "last used",
    "last used at",
];

/// Ends of the names that say so there, beside [`NAMES`].
const SAYS_SECRET: &[&str] = &[
    "value", "secret", "token", "key", "pass", "pw", "data", "code", "hash", "seed", "text", "string",
    "content", "pin",
];

/// What stands in a field of [`OAUTH`].
static OAUTH_FIELD: SecretName = whole("code", "oauth");

/// For each letter that a name of [`NAMES`] ends in, a bit for each letter that may stand before it.
const LAST_TWO: [u32; 26] = {
    let (mut before, mut row) = ([0; 26], 0);
    while row < NAMES.len() {
        let words = NAMES[row].words.as_bytes();
        before[(words[words.len() - 1] - b'a') as usize] |= 1 << (words[words.len() - 2] - b'a');
        row += 1;
    }
    before
};

/// Whether a name ends in two letters that names of secrets end in: most names are done with then.
fn may_be_secret(name: &[u8]) -> bool {
    let known = name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric());
    let mut letters = known.skip_while(|byte| byte.is_ascii_digit()).map(|byte| byte.to_ascii_lowercase());
    let (Some(last), Some(before)) = (letters.next(), letters.next()) else { return false };
    before.is_ascii_lowercase() && LAST_TWO[usize::from(last - b'a')] & 1 << (before - b'a') != 0
}

/// What kind of secret stands under a name, if any.
pub(super) fn secret(name: &[u8]) -> Option<&'static SecretName> {
    if !may_be_secret(name) {
        return None;
    }
    let mut room = [0; LONGEST];
    let name = squeeze(name, &mut room);
    let last = name.last()?;
    let row =
        NAMES.iter().filter(|row| row.words.as_bytes().last() == Some(last)).find(|row| match row.end {
            End::Any => ends_with(name, row.words),
            End::Whole => is(name, row.words),
        })?;
    // All of these are tokens.
    let spared = row.kind == "token" && PROTOCOL.iter().any(|words| ends_with(name, words));
    (!spared).then_some(row)
}

/// What kind of secret the word behind a flag is, if any; `name` is the flag's, without its dashes.
pub(super) fn secret_flag(name: &[u8]) -> Option<&'static SecretName> {
    secret(name).or_else(|| name.eq_ignore_ascii_case(b"pass").then_some(&PASS))
}

/// A kind of secret that a name has, by what a file calls it; any other is a secret as well.
pub(super) fn kind(called: &str) -> &'static str {
    NAMES.iter().map(|row| row.kind).find(|kind| *kind == called).unwrap_or("secret")
}

/// Whether some name gives its values this kind.
pub(super) fn gives(kind: &str) -> bool {
    NAMES.iter().any(|row| row.kind == kind)
}

/// Whether a header of this name carries credentials.
pub fn is_credential(name: &str) -> bool {
    secret(name.as_bytes()).is_some()
}

/// What kind of secret stands under a parameter's name in an address; `oauth` says whether the address speaks OAuth.
pub(super) fn secret_parameter(name: &[u8], oauth: impl FnOnce() -> bool) -> Option<&'static str> {
    if let Some(row) = secret(name) {
        return Some(row.kind);
    }
    let mut room = [0; LONGEST];
    let name = squeeze(name, &mut room);
    if SIGNATURES.iter().any(|words| is(name, words)) {
        Some("signature")
    } else if OAUTH.iter().any(|words| is(name, words)) && oauth() {
        Some(OAUTH_FIELD.kind)
    } else {
        None
    }
}

/// Whether a parameter's name tells that its address or form speaks OAuth.
pub(super) fn speaks_oauth(name: &[u8]) -> bool {
    is_one_of(name, OAUTH_SIGNS)
}

/// Whether a member's name tells that its object speaks OAuth.
pub(super) fn grants(name: &[u8]) -> bool {
    is_one_of(name, GRANTS)
}

/// Whether a member of this name tells that its object describes a secret.
pub(super) fn describes(name: &[u8]) -> bool {
    is_one_of(name, DESCRIBES)
}

/// Whether a member of this name is the secret of an object that describes one.
pub(super) fn says_secret(name: &[u8]) -> bool {
    let mut room = [0; LONGEST];
    let name = squeeze(name, &mut room);
    SAYS_SECRET.iter().any(|words| ends_with(name, words))
}

/// The name of a secret that one of the words of a description ends in.
pub(super) fn in_words(text: &[u8]) -> Option<&'static SecretName> {
    let text = &text[..text.len().min(LONGEST)];
    let ends_word =
        |&end: &usize| is_name_byte(text[end - 1]) && text.get(end).is_none_or(|byte| !is_name_byte(*byte));
    (1..=text.len()).filter(ends_word).find_map(|end| secret(&text[..end]))
}

/// Whether a member of this name holds the value of one whose name another member gives.
pub(super) fn is_value(name: &[u8]) -> bool {
    [&b"value"[..], b"val", b"parametervalue"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether this is the name of what OAuth grants.
pub(super) fn is_code(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"code")
}

/// Whether a parameter's or member's name may tell that the `code` beside it was granted.
pub(super) fn is_beside_code(name: &[u8]) -> bool {
    is_one_of(name, BESIDE_CODE)
}

/// Whether a member's name all but tells that.
pub(super) fn is_near_code(name: &[u8]) -> bool {
    is_one_of(name, NEAR_CODE)
}

/// Whether what stands under a name is secret only where OAuth is spoken.
pub(super) fn is_oauth_field(name: &[u8]) -> bool {
    is_one_of(name, OAUTH)
}

/// What stands under a member's name where its object speaks OAuth, if that is secret.
pub(super) fn oauth_field(name: &[u8]) -> Option<&'static SecretName> {
    is_oauth_field(name).then_some(&OAUTH_FIELD)
}

fn is_one_of(name: &[u8], list: &[&str]) -> bool {
    let mut room = [0; LONGEST];
    let name = squeeze(name, &mut room);
    list.iter().any(|words| is(name, words))
}

/// Whether a byte can stand in a name that is not in quotes.
pub(super) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A name's letters and digits in lower case, without digits at its end; of a long one the last.
fn squeeze<'a>(name: &[u8], room: &'a mut [u8; LONGEST]) -> &'a [u8] {
    let known = name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric());
    let mut start = LONGEST;
    for byte in known.skip_while(|byte| byte.is_ascii_digit()).take(LONGEST) {
        start -= 1;
        room[start] = byte.to_ascii_lowercase();
    }
    &room[start..]
}

fn ends_with(name: &[u8], words: &str) -> bool {
    let mut rest = name.iter().rev();
    words.bytes().rev().filter(|byte| *byte != b' ').all(|byte| rest.next() == Some(&byte))
}

fn is(name: &[u8], words: &str) -> bool {
    name.iter().copied().eq(words.bytes().filter(|byte| *byte != b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Option<&'static str> {
        super::secret(name.as_bytes()).map(|row| row.kind)
    }

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for (name, expected) in [
            ("password", "password"),
            ("dbPassword", "password"),
            ("PGPASSWORD", "password"),
            ("new_password2", "password"),
            ("MYSQL_PWD", "password"),
            ("smtp_pass", "password"),
            ("client_secret", "secret"),
            ("clientSecret", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("token", "token"),
            ("GITHUB_TOKEN", "token"),
            ("accessToken", "token"),
            ("refresh-token", "token"),
            ("bearer", "token"),
            ("X-Amz-Security-Token", "token"),
            ("api_key", "api-key"),
            ("x-api-key", "api-key"),
            ("API Key", "api-key"),
            ("OPENAI_API_KEY", "api-key"),
            ("Ocp-Apim-Subscription-Key", "api-key"),
            ("privateKeyPem", ""),
            ("private_key", "private-key"),
            ("Authorization", "authorization"),
            ("Proxy-Authorization", "authorization"),
            ("Set-Cookie", "cookie"),
            ("credentials", "credential"),
            ("code_verifier", "oauth"),
        ] {
            assert_eq!(kind(name), Some(expected).filter(|kind| !kind.is_empty()), "{name}");
        }
    }

    #[test]
    fn names_of_the_protocol_and_of_counts_are_not() {
        for name in [
            "progressToken",
            "maxTokens",
            "max_tokens",
            "totalTokens",
            "tokens",
            "token_count",
            "tokenType",
            "bearerFormat",
            "forBearer",
            "nextPageToken",
            "NextToken",
            "cursor",
            "nextCursor",
            "taskId",
            "requestState",
            "secretName",
            "passwordPolicy",
            "author",
            "authorizationUrl",
            "requires_authorization",
            "keyboard",
            "key",
            "primaryKey",
            "pass",
            "bypass",
            "",
            "123",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
        assert!(PROTOCOL.iter().all(|words| words.ends_with("token")));
        assert_eq!(kind(&"a".repeat(100)), None);
        assert_eq!(kind(&format!("{}token", "a_".repeat(100))), Some("token"));
        assert_eq!(kind(&format!("{}page_token", "a".repeat(100))), None);
    }

    #[test]
    fn folders_and_files_are_no_secrets() {
        let holds = |name: &str, value: &str| secret(name.as_bytes()).unwrap().may_hold(value.as_bytes());
        assert!(!holds("PWD", "/home/ann") && holds("PWD", "hunter2") && !holds("OLDPWD", r"C:\work"));
        assert!(!holds("private_key", "~/.ssh/id_rsa") && holds("private_key", "/9j+AAbb"));
        assert!(holds("password", "/etc/x.pem"));
    }

    #[test]
    fn parameters_of_addresses_know_signatures_and_oauth() {
        assert_eq!(secret_parameter(b"X-Amz-Signature", || false), Some("signature"));
        assert_eq!(secret_parameter(b"sig", || false), Some("signature"));
        assert_eq!(secret_parameter(b"access_token", || false), Some("token"));
        assert_eq!(secret_parameter(b"state", || false), None);
        assert_eq!(secret_parameter(b"state", || true), Some("oauth"));
        assert!(speaks_oauth(b"redirect_uri") && !speaks_oauth(b"state"));
    }
}
