use rmcp::{ServiceExt, model::CallToolRequestParams, object, transport::TokioChildProcess};
use tokio::process::Command;

#[tokio::test]
#[ignore = "snippets.rs runs it, beside its cassette"]
async fn sum() -> Result<(), Box<dyn std::error::Error>> {
    let reports = tempfile::tempdir()?;
    let mut server = Command::new("tapedeck");
    server.args(["replay", "sum.json", "--report"]).arg(reports.path());
    let client = ().serve(TokioChildProcess::new(server)?).await?;
    let call = CallToolRequestParams::new("get-sum").with_arguments(object!({"a": 2, "b": 3}));
    let result = client.call_tool(call).await?;
    assert_eq!(result.content[0].as_text().expect("it is a text").text, "The sum of 2 and 3 is 5.");
    client.cancel().await?;
    assert!(Command::new("tapedeck").arg("verdict").arg(reports.path()).status().await?.success());
    Ok(())
}
