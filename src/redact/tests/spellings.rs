//! Known values in the spellings of the texts that repeat them.

use super::{env, plain, redact, redactor};

/// Each text has `<>` where the secret stands, spelled so.
#[track_caller]
fn found(secret: &str, spelled: &str, around: &[&str]) {
    for around in around {
        let text = |inside: &str| {
            let text = around.replace("<>", inside);
            format!(r#"{{"a":{}}}"#, serde_json::to_string(&text).unwrap())
        };
        let hidden = text("<redacted:env-1>");
        assert_eq!(redact(&mut redactor(env(secret)), &text(spelled)), hidden, "{secret} as {spelled}");
        // Without the JSON around it.
        let line = around.replace("<>", spelled);
        let hidden = around.replace("<>", "<redacted:env-1>");
        assert_eq!(redact(&mut redactor(env(secret)), &line), hidden, "{secret} as {spelled}");
    }
}

#[test]
fn signs_are_known_as_texts_spell_them() {
    let around = &["<>", "see <>.", "a=<>&b=c", "('<>')", "<p><></p>"];
    for (secret, spelled) in [
        ("Kd93m&Zq71Lp", "Kd93m&amp;Zq71Lp"),
        ("Kd93m&Zq71Lp", "Kd93m&#38;Zq71Lp"),
        ("Zq71Lp<&>\"'/x", "Zq71Lp&lt;&amp;&gt;&quot;&#39;&#x2F;x"),
        ("\"Kd93mZq71Lp", "&quot;Kd93mZq71Lp"),
        ("Kd93m Zq71Lp", "Kd93m+Zq71Lp"),
        ("Kd93m Zq&1Lp", "Kd93m+Zq%261Lp"),
        ("Kd93m+Zq71Lp", "Kd93m Zq71Lp"),
        ("Kd93m'Zq71Lp", "Kd93m''Zq71Lp"),
        ("'Kd93mZq71'Lp", "''Kd93mZq71''Lp"),
        ("Kd93m\"Zq71Lp", "Kd93m\"\"Zq71Lp"),
        ("Kd93m$Zq71Lp", "Kd93m\\$Zq71Lp"),
        ("$Kd93m\\\"Zq71Lp!", "\\$Kd93m\\\\\\\"Zq71Lp\\!"),
        ("100%Kd93mZq71Lp", "100%25Kd93mZq71Lp"),
        ("&amp;Kd93mZq71Lp", "&amp;Kd93mZq71Lp"),
        ("Kd93m''Zq71Lp", "Kd93m''Zq71Lp"),
        ("Kd93m'Zq71Lp", "Kd93m'\"'\"'Zq71Lp"),
        ("Kd93m'Zq71Lp", "Kd93m'\\''Zq71Lp"),
        ("Kd93m Zq(71)Lp;&|*", "Kd93m\\ Zq\\(71\\)Lp\\;\\&\\|\\*"),
        ("Kd93m$Zq71`Lp\\x", "Kd93m\\$Zq71\\`Lp\\x"),
        ("$Kd93mZq71Lp", "\\$Kd93mZq71Lp"),
        ("Kd93m'Zq\t71Lp\n\"", "Kd93m\\'Zq\\t71Lp\\n\\\""),
        ("Kd93m'Zq71Lpé", "Kd93m\\x27Zq71Lp\\303\\251"),
        ("Kd93m'Zq71Lp", "Kd93m\\u0027Zq71Lp"),
    ] {
        found(secret, spelled, around);
    }
}

#[test]
fn a_value_without_letters_and_digits_in_a_row_is_known_in_all_of_them() {
    let around = &["<>", "see <>.", "a=<>&b=c", "('<>')", "(x<>)"];
    for (secret, spellings) in [
        (
            "a'b$c\"d&e f",
            &[
                "a'b$c\"d&e f",
                "a&#x27;b$c&quot;d&amp;e f",
                "a&#39;b$c&#34;d&amp;e f",
                "a'b$c\"d&amp;e f",
                "a%27b%24c%22d%26e%20f",
                "a%27b%24c%22d%26e+f",
                "a'b%24c%22d%26e%20f",
                "a'\"'\"'b$c\"d&e f",
                "a'\\''b$c\"d&e f",
                "a''b$c\"d&e f",
                "a\\'b\\$c\\\"d\\&e\\ f",
                "a'b\\$c\\\"d&e f",
                "a\\'b$c\"d&e f",
            ][..],
        ),
        (
            "&<>&<>\"'&",
            &["&<>&<>\"'&", "&amp;&lt;&gt;&amp;&lt;&gt;&quot;&#x27;&amp;", "%26%3C%3E%26%3C%3E%22%27%26"],
        ),
        ("p w-1 x+2", &["p w-1 x+2", "p+w-1+x%2B2", "p%20w-1%20x%2b2", "p\\ w-1\\ x+2"]),
        (
            "é'ü$ä.-é!",
            &[
                "é'ü$ä.-é!",
                "%C3%A9%27%C3%BC%24%C3%A4.-%C3%A9!",
                "\\303\\251\\'\\303\\274$\\303\\244.-\\303\\251!",
            ],
        ),
    ] {
        for spelled in spellings {
            found(secret, spelled, around);
        }
    }
}

#[test]
fn what_is_spelled_otherwise_is_another_value() {
    for (secret, other) in [
        ("Kd93m&Zq71Lp", "Kd93m&lt;Zq71Lp"),
        ("Kd93m&Zq71Lp", "Kd93m&#399;Zq71Lp"),
        ("Kd93m&Zq71Lp", "Kd93m&ampZq71Lp"),
        ("Kd93m'Zq71Lp", "Kd93m'\"Zq71Lp"),
        ("Kd93m Zq71Lp", "Kd93m-Zq71Lp"),
    ] {
        let text = format!("see {other}.");
        assert_eq!(redact(&mut redactor(env(secret)), &text), text, "{secret}");
    }
}

#[test]
fn a_value_that_is_met_encoded_is_known_as_it_is() {
    for (met, hidden, value) in [
        ("postgres://a:Kd93%2FmZq71Lp@h/", "postgres://a:<redacted:url-password-1>@h/", "Kd93/mZq71Lp"),
        (
            "<password>Kd93&amp;mZq71Lp</password>",
            "<password><redacted:password-1></password>",
            "Kd93&mZq71Lp",
        ),
        ("/x?token=Kd93%26mZq71Lp", "/x?token=<redacted:token-1>", "Kd93&mZq71Lp"),
    ] {
        let mut redactor = plain();
        assert_eq!(redact(&mut redactor, met), hidden);
        assert_eq!(redact(&mut redactor, met), hidden);
        let again = redact(&mut redactor, &format!(r#"["{value}"]"#));
        assert!(again.starts_with("[\"<redacted:") && again.ends_with("-1>\"]"), "{again}");
    }
}
