//! Passwords in SQL.

use super::plain;
use super::settings::{hidden, stays};

#[test]
fn statements_that_set_a_password_have_one() {
    hidden(
        "password",
        "letters",
        &[
            "SET PASSWORD = '<>'",
            "SET PASSWORD='<>';",
            "SET PASSWORD FOR 'ann'@'%' = '<>'",
            "set password for ann = PASSWORD('<>')",
            "SET PASSWORD TO '<>'",
            "ALTER USER ann SET PASSWORD '<>'",
            "CREATE LOGIN ann WITH PASSWORD = N'<>', CHECK_POLICY = OFF",
            "ALTER LOGIN ann WITH PASSWORD='<>'",
            "ALTER LOGIN sa WITH OLD_PASSWORD = '<>'",
            "CREATE USER ann PASSWORD E'<>'",
            "CREATE USER ann WITH ENCRYPTED PASSWORD '<>'",
            "CREATE ROLE ann LOGIN PASSWORD \"<>\"",
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '<>'",
            "GRANT ALL ON *.* TO 'ann'@'%' IDENTIFIED BY PASSWORD '<>'",
            "CREATE USER ann IDENTIFIED BY '<>' REQUIRE SSL",
        ],
    );
    hidden("secret", "letters", &["CREATE CREDENTIAL c WITH IDENTITY = 'ann', SECRET = '<>'"]);
    hidden("password", "hunter2x", &["CREATE USER ann IDENTIFIED BY <> DEFAULT TABLESPACE t"]);
    let mut redactor = plain();
    for (statement, said) in [("E'a\\'b1c2d3e'", "a'b1c2d3e"), ("'a''b1c2d3f'", "a'b1c2d3f")] {
        let statement = format!("CREATE USER ann PASSWORD {statement}");
        assert!(redactor.text(&statement).contains("'<redacted:password-"), "{statement}");
        assert!(redactor.text(&format!("say {said}!")).starts_with("say <redacted:password-"), "{said}");
    }
}

#[test]
fn what_is_filled_in_and_what_only_speaks_of_it_stays() {
    stays(&[
        "SET PASSWORD = '%s'",
        "UPDATE u SET password = ? WHERE id = 1",
        "UPDATE u SET password = ':pw'",
        "UPDATE u SET password = '@pw'",
        "SET PASSWORD = '${PW}'",
        "set password to a value",
        "SET PASSWORD FOR ann",
        "I reset password = 'no'",
        "CREATE USER ann IDENTIFIED BY RANDOM PASSWORD",
        "users are identified by hunter2x",
        "CREATE USER ann; IDENTIFIED BY hunter2x",
        "CREATE TABLE u (password VARCHAR(255) NOT NULL, token text)",
        "ALTER USER ann PASSWORD EXPIRE",
        "CREATE LOGIN ann WITH PASSWORD = N'",
    ]);
}
