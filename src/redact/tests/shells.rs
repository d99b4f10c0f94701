//! Command lines, environments of shells, and elements of XML.

use super::settings::{hidden, json, stays};
use super::{plain, redact, session};

#[test]
fn the_login_that_curl_is_given_has_a_password() {
    hidden(
        "password",
        "hunter2",
        &[
            "curl -u ann:<> https://h",
            "curl https://h -sSLu ann:<>",
            "curl -uann:<> https://h",
            "curl -X POST -H 'A: b' -u 'ann:<>' https://h",
            "curl --user ann:<> https://h",
            "curl --user=ann:<>",
            "curl --user \"ann:<>\" https://h",
            "curl --proxy-user ann:<> -x http://p https://h",
            "curl -U ann:<>",
            "$ /usr/bin/curl -s \\\n  -u ann:<> \\\n  https://h",
            "x=$(curl -u ann:<> https://h)",
            "run `curl -u ann:<> h` now",
            "cd /x\ncurl -u ann:<>\n",
            "curl.exe -u ann:<>",
            "first | curl -u ann:<> -d @- https://h",
            "subprocess.run(['curl', '-u', 'ann:<>', 'https://h'])",
            "exec [\"curl\", \"-s\", \"--user=ann:<>\"]",
        ],
    );
    hidden(
        "password",
        "hunter2",
        &[
            "curl -u ann:$'<>' https://h",
            "curl --user $'ann:<>' https://h",
            "curl -u $(whoami):<> https://h",
            "curl -u \"$(id -un):<>\" https://h",
            "curl -u `whoami`:<> https://h",
            "curl -u ${NAME:-ann}:<> https://h",
            "curl --user=$(a \"$(b)\"):<> https://h",
            "['curl', '-u', '$(whoami):<>']",
        ],
    );
    hidden("password", "k3y0fann00", &["curl -u <>: https://h", "curl -u \"<>:\" https://h"]);
    hidden("token", "abc123def456", &["curl --oauth2-bearer <> https://h"]);
}

#[test]
fn quotes_of_a_shell_are_no_part_of_a_password() {
    for login in ["ann:'<>'", "ann:\"<>\"", "'ann':'<>'", "\"ann\":\"<>\"", "'ann:'<>", "'ann:<>'"] {
        for line in [format!("curl -u {login} https://h"), format!("curl --user={login} https://h")] {
            let said = |secret: &str| {
                let line = serde_json::to_string(&line.replace("<>", secret)).unwrap();
                format!(r#"{{"cmd":{line},"a":"had {secret}."}}"#)
            };
            assert_eq!(redact(&mut plain(), &said("aB3dk49dkdQ1")), said("<redacted:password-1>"), "{line}");
        }
    }
    let said = |secret: &str| format!(r#"{{"a":"psql postgres://ann:'{secret}'@h/d","b":"{secret}"}}"#);
    assert_eq!(redact(&mut plain(), &said("aB3dk49dkdQ1")), said("<redacted:url-password-1>"));
}

#[test]
fn a_quote_behind_a_backslash_ends_no_value() {
    for text in [
        "run --password=\"<>\" -v",
        "run --password \"<>\" -v",
        "DB_PASSWORD=\"<>\" x",
        "password: \"<>\"\n",
        "$env:DB_PASSWORD = \"<>\"",
        "db.password = \"<>\";",
    ] {
        hidden("password", "a1234\\\"b56789", &[text]);
    }
    for text in
        ["run --password=$'<>' -v", "run --password $'<>' -v", "DB_PASSWORD=$'<>' x", "curl -u ann:$'<>' h"]
    {
        hidden("password", "a1234\\'b56789", &[text]);
    }
    // What it says is known from then on.
    for (text, value) in [
        ("--password=\"a1234\\\"b\\$6789\"", "a1234\"b$6789"),
        ("DB_PASSWORD=$'a1234\\'b\\x24789'", "a1234'b$789"),
        ("curl -u ann:$'a1234\\nb6789' h", "a1234\nb6789"),
    ] {
        let mut redactor = plain();
        assert!(redactor.text(text).contains("<redacted:password-1>"), "{text}");
        assert_eq!(redactor.text(&format!("say {value}!")), "say <redacted:password-1>!", "{text}");
    }
    // Where no quote closes, the backslash ends it as before.
    stays(&["password = \"two \\\" words12"]);
}

#[test]
fn a_sign_behind_a_backslash_belongs_to_its_word() {
    hidden(
        "password",
        "my\\ pass\\ 99word",
        &[
            "export PASSWORD=<>",
            "PASSWORD=<> cmd",
            "tool --password=<> -v",
            "tool --password <> -v",
            "curl -d password=<> h",
        ],
    );
    hidden(
        "token",
        "a\\'b\\&c99xyz",
        &["API_TOKEN=<> cmd", "API_TOKEN=<>", "export API_TOKEN=<>; cmd", "bash -c \"tool --token <> -v\""],
    );
    hidden("password", "a\\'b\\&c99xyz", &["curl -u bob:<> h", "curl --user=bob:<> h"]);
    hidden(
        "password",
        "a\\;b9cdefgh",
        &["tool --password <>", "tool --password=<> && ls", "PASSWORD=<>\ncmd"],
    );
    hidden("password", "\\&b9cdefgh", &["tool --password <> -v", "PASSWORD=<> cmd"]);
    hidden("password", "a\\\"b9cdefgh", &["tool --password <> -v", "PASSWORD=<> cmd"]);
    // What it says is known from then on.
    for text in ["PASSWORD=a\\'b\\&c99xyz cmd", "curl -u bob:a\\'b\\&c99xyz h"] {
        let mut redactor = plain();
        assert!(redactor.text(text).contains("<redacted:password-1>"), "{text}");
        assert_eq!(redactor.text("say a'b&c99xyz!"), "say <redacted:password-1>!", "{text}");
    }
    for text in [
        "PASSWORD=<> \\\n  cmd",
        "PASSWORD=<>\\\n cmd",
        "say \\\"PASSWORD=<>\\\" ok",
        "{\\\"a\\\":\\\"PASSWORD=<>\\\",\\\"b\\\":1",
    ] {
        hidden("password", "b9cdefgh", &[text]);
    }
    stays(&[
        "tool --password \\\n -v",
        "PASSWORD=$A\\ b99cdefgh",
        "find x -exec curl h \\; -exec y -u a:b1c2 \\;",
    ]);
}

#[test]
fn a_quote_within_quotes_of_a_shell_is_one_sign() {
    for sign in [r#"'"'"'"#, r"'\''"] {
        let spell = |text: &str| text.replace('~', sign);
        for text in [
            "bash -c 'export API_TOKEN=~<>~'",
            "bash -c 'API_TOKEN=~<>~ cmd'",
            "bash -c 'tool --token ~<>~'",
            "bash -c 'tool --token=~<>~ -v'",
            "ssh h 'curl -d ~token=<>~ https://h'",
            "ssh h 'curl -d ~token=<>&user=bob~ https://h'",
        ] {
            hidden("token", "Zk7qPx92mWvR", &[&spell(text)]);
        }
        hidden("token", "two words9", &[&spell("bash -c 'export API_TOKEN=~<>~; cmd'")]);
        stays(&[
            &spell("bash -c 'export API_TOKEN=~~'"),
            &spell("bash -c 'export API_TOKEN=~$OTHER~'"),
            &spell("bash -c 'tool --token ~$TOKEN1234~'"),
        ]);
    }
}

#[test]
fn a_list_of_words_that_curl_is_given_has_it_too() {
    session(
        &mut plain(),
        &[
            (
                r#"{"command":"curl","args":["-s","-u","ann:hunter2-one","https://h"]}"#,
                r#"{"command":"curl","args":["-s","-u","ann:<redacted:password-1>","https://h"]}"#,
            ),
            (
                r#"{"args":["--user","ann:a\"b","-sUann:c","-X","-u","x:y"],"command":"/usr/bin/curl"}"#,
                r#"{"args":["--user","<redacted:password-2>","-sUann:<redacted:password-3>","-X","-u","x:y"],"command":"/usr/bin/curl"}"#,
            ),
            (
                r#"{"t":"{\"argv\": [\"curl\", \"--user=ann:hunter3\"]}","x":"hunter2-one"}"#,
                r#"{"t":"{\"argv\": [\"curl\", \"--user=ann:<redacted:password-4>\"]}","x":"<redacted:password-1>"}"#,
            ),
        ],
    );
}

#[test]
fn users_of_others_and_what_is_no_login_stay() {
    stays(&[
        "docker run -u 1000:1000 -v /a:/b image",
        "docker run --user node:node image",
        "docker run -u 1000:1000 curlimages/curl https://h",
        "curl -u ann https://h",
        "curl -u ann: https://h",
        "curl -u $USER:$PASS https://h",
        "curl -u $(whoami):$(cat pw) https://h",
        "curl -u $(a:b) https://h",
        "curl -u ${NAME:-ann} https://h",
        "curl -u \"$USER:${PASS}\" https://h",
        "curl -u <user>:<password> https://h",
        "curl --user-agent a:b https://h",
        "curl -H 'u: x' -o u:v https://h -w u:v",
        "curl https://h; sudo -u ann:x ls",
        "curl https://h\nsudo -u ann:x",
        "curl -d '-u a:b' https://h",
        "a curl -u is for users: see the manual",
        "libcurl -u a:b",
        "curly -u a:b",
        "curl: (6) Could not resolve host: h",
    ]);
    for message in [
        r#"{"command":"docker","args":["run","-u","node:node","x"]}"#,
        r#"{"command":"docker","args":["run","-u","1000:1000","curl"]}"#,
        r#"{"command":"curl","args":["-u","ann","-o","-u","a:b","https://h:80"],"user":"a:b"}"#,
        r#"{"enum":["curl","wget"],"args":["-u"],"x":["a:b"]}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn the_word_behind_pass_is_one_where_that_is_a_flag() {
    hidden(
        "password",
        "hunter2",
        &[
            "x --pass <> -v",
            "x --pass=<>",
            "x --pass '<>'",
            "[\"--pass\", \"<>\"]",
            "--pass <>",
            "-keypass <>",
        ],
    );
    hidden("password", "letters", &["x --pass=<>", "[\"x\", \"--pass\", \"<>\"]", "STORE_PASS=<>"]);
    stays(&[
        "pass=<>1",
        "x --pass 2",
        "[\"--pass\", \"2\"]",
        "x --passive hunter22",
        "x --no-pass hunter22",
        "the pass hunter22",
        "bypass: hunter22",
        "x --pass-through hunter22",
        "x --pass $PASS22",
    ]);
}

#[test]
fn variables_of_powershell_are_variables() {
    hidden(
        "token",
        "hunter2",
        &[
            "$env:GITHUB_TOKEN=\"<>\"",
            "$env:GITHUB_TOKEN = \"<>\"",
            "$Env:github_token = '<>'; npm x",
            "x; $env:GITHUB_TOKEN='<>'",
            "${env:GITHUB_TOKEN}=\"<>\"",
            "${env:GITHUB_TOKEN} = '<>'",
            "PS C:\\> $env:MY_TOKEN = \"<>\"\nnpm x",
        ],
    );
    hidden("password", "two words", &["$env:MYSQL_PWD = \"<>\"", "${env:MYSQL_PWD}='<>'"]);
    hidden("token", "abcdef123456", &["$env:MY_TOKEN=<>"]);
    hidden("api-key", "two words", &["setx API_KEY \"<>\" /M"]);
    hidden("api-key", "x", &["setx API_KEY <>", "> setx API_KEY <> /M"]);
    stays(&[
        "setx API_KEY %OTHER%",
        "$env:TOKEN = $other",
        "$env:TOKEN = \"$other\"",
        "$env:TOKEN = Get-Token -Name x1",
        "$env:TOKEN == \"x\"",
        "echo $env:TOKEN \"x\"",
        "${env:TOKEN = \"x\"",
        "$env:TOKEN} = \"x\"",
        "$env:TOKEN_COUNT = \"12\"",
        "$env:TOKEN = \"\"",
    ]);
}

#[test]
fn an_element_of_a_secret_name_has_a_secret() {
    hidden(
        "password",
        "hunter2",
        &[
            "<password><></password>",
            "<a><Password> <>\n</Password><b/></a>",
            "<wsse:Password Type=\"Text\"><></wsse:Password>",
            "<password><![CDATA[<>]]></password>",
            "<db.password><></db.password>",
            "<user>x</user>\r\n  <password><></password>",
        ],
    );
    hidden("password", "p\\w\"d", &["<password><></password>"]);
    hidden("password", "two words", &["<password><![CDATA[<>]]></password>"]);
    hidden("api-key", "letters", &["<add><apiKey><></apiKey></add>", "<api-key><></api-key>"]);
    hidden("password", "x1", &["<pwd><></pwd>"]);
    hidden(
        "password",
        "two words",
        &[
            "<user name=\"a\" password=\"<>\"/>",
            "<a><add password='<>' key='b' /></a>",
            "<add\n\tkey=\"b\"\n\tpassword=\"<>\">",
        ],
    );
    stays(&[
        "<password></password>",
        "<password/>",
        "<password>two words</password>",
        "<password>${db.password}</password>",
        "<password>********</password>",
        "<password><value>x</value></password>",
        "<token id=\"1\"><word>x</word></token>",
        "<token>x</other>",
        "<token>x",
        "<tokens>12</tokens>",
        "<passwordPolicy>x</passwordPolicy>",
        "use <token> for x, <token> for y",
        "<input type=\"password\" password=\"${pw}\">",
        "a < b and password=\"two words\" ",
    ]);
    for [text, expected] in [
        [
            r"\u003cpassword\u003ehunter2\u003c/password\u003e",
            r"\u003cpassword\u003e<redacted:password-1>\u003c/password\u003e",
        ],
        [r"<password>hunter2<\/password>", r"<password><redacted:password-1><\/password>"],
        [
            r"\u003cpassword a='b'>hunter2</password>",
            r"\u003cpassword a='b'><redacted:password-1></password>",
        ],
    ] {
        let [text, expected] = [text, expected].map(|text| format!(r#"{{"v":"{text}"}}"#));
        assert_eq!(redact(&mut plain(), &text), expected);
    }
}

#[test]
fn a_word_may_have_several_pieces() {
    for (word, said) in [
        ("'ab'cd99ef", "abcd99ef"),
        ("\"ab c\"d99ef", "ab cd99ef"),
        ("ab\"cd99\"'efg'", "abcd99efg"),
        ("ab\"\"cd99efg", "abcd99efg"),
        ("'ab'\"cd99efg\"", "abcd99efg"),
        ("abc99\\\ndef1", "abc99def1"),
    ] {
        for text in ["export PASSWORD=<>", "PASSWORD=<> cmd", "x --password=<> -v", "x --password <> -v"] {
            hidden("password", word, &[text]);
            let mut redactor = plain();
            assert!(redactor.text(&text.replace("<>", word)).contains("<redacted:password-1>"), "{text}");
            assert_eq!(redactor.text(&format!("say {said}!")), "say <redacted:password-1>!", "{word}");
        }
    }
    hidden("password", "ab\\\ncd", &["PASSWORD=\"<>\" cmd"]);
    hidden("password", "x y9", &[r"bash -c 'bash -c '\''PASSWORD='\''\'\'''\''<>'\''\'\'''\'' cmd'\'''"]);
    hidden("password", "ab", &["say \"PASSWORD=<>\", \"c\"", "'PASSWORD=<>' 'c'", "(PASSWORD='<>') x"]);
    hidden("password", "x y", &["sh -c \"PASSWORD=\\\"<>\\\"\" ok", "PASSWORD=\"<>\""]);
    stays(&[
        "bash -c 'PASSWORD='\"$X\"' cmd'",
        "PASSWORD=\\$NAME cmd",
        "bash -c \"PASSWORD=\\$NAME cmd\"",
        "PASSWORD=\"\\$NAME\"",
    ]);
    hidden("api-key", "abc", &["API_KEY=\"<>\".trim()", "f(API_KEY=\"<>\", b=\"c\")"]);
}

#[test]
fn an_option_has_a_field_in_its_word() {
    hidden(
        "password",
        "hunt er",
        &[
            "curl -d 'password=<>' h",
            "curl -d 'password=<>&user=x' h",
            "curl -d'password=<>' h",
            "curl -d 'user=x&password=<>' h",
            "curl -F \"password=<>;type=text/plain\" h",
            "curl --data-urlencode 'password=<>' h",
            "curl --data='password=<>' h",
            "sh -c \"curl -d \\\"password=<>\\\" h\"",
            "docker run -e \"PASSWORD=<>\" i",
            "docker run -e 'PASSWORD=<>' i",
            "docker build --build-arg 'PASSWORD=<>' .",
            "helm install --set 'auth.password=<>,a=b' c",
        ],
    );
    hidden(
        "password",
        "hunter",
        &[
            "--data=password=<>",
            "curl -d password=<> h",
            "kubectl create secret generic x --from-literal=password=<>",
            "helm install --set auth.password=<>,a=b c",
            "docker run -e PASSWORD=<> i",
        ],
    );
    for (message, expected) in [
        (
            r#"["docker","run","-e","PASSWORD=hunt er 99x","i"]"#,
            r#"["docker","run","-e","PASSWORD=<redacted:password-1>","i"]"#,
        ),
        (
            r#"{"args":["-d","password=hunt er&user=x","-F","token=@t","--set","a.token=x y,b=c"]}"#,
            r#"{"args":["-d","password=<redacted:password-1>&user=x","-F","token=@t","--set","a.token=<redacted:token-1>,b=c"]}"#,
        ),
        (r#"["-e","password=a b","PASSWORD=$X y"]"#, r#"["-e","password=a b","PASSWORD=$X y"]"#),
    ] {
        assert_eq!(redact(&mut plain(), message), expected);
        assert_eq!(redact(&mut plain(), &json(message)), json(expected));
    }
    hidden("api-key", "abc=", &["API_KEY=<>;ls", "API_KEY=<> ; ls"]);
    stays(&[
        "curl -F 'token=@t.txt;type=text/plain' h",
        "curl -d \"password=$PASS word\" h",
        "grep -e 'password=hunt er' f",
        "git commit -m 'password=hunt er' f",
    ]);
}

#[test]
fn programs_are_given_passwords() {
    hidden(
        "password",
        "SECRET",
        &[
            "mysql -p<> -u root",
            "mysqldump -u root -p'<>' db",
            "sshpass -p <> ssh h",
            "/usr/bin/sshpass -p'<>' ssh h",
            "docker login -u x -p <> h",
            "x && podman login -p \"<>\" h",
        ],
    );
    hidden("password", "horse138", &["echo \"password: <>\"", "echo 'password: <>' > f"]);
    stays(&[
        "mysql -p db",
        "mysql -port 3306",
        "docker run -p 80:80 i",
        "mkdir -p SECRET; sshpass -p $X ssh -p 22",
        "docker login -p <password>",
        "sshpass -e ssh -p 22 h",
        "sshpass -f file ssh -p 22 h",
        "log(\"password: '\" + x1234567 + \"'\")",
    ]);
}
