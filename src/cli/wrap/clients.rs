//! Where each client keeps the servers it starts.

use std::{ffi::OsString, path::PathBuf};

/// The clients that are known.
pub(super) const NAMES: [&str; 5] = ["claude-code", "claude-desktop", "codex", "cursor", "vscode"];

/// The configurations of a client, the working folder's own first; none for a name that is not known. Relative paths
/// are in the working folder.
pub(super) fn places(client: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<PathBuf>> {
    let home = PathBuf::from(variable("HOME").unwrap_or_default());
    let settings = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else {
        variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from)
    };
    Some(match client {
        "claude-code" => vec![".mcp.json".into(), home.join(".claude.json")],
        "claude-desktop" => vec![settings.join("Claude/claude_desktop_config.json")],
        "codex" => {
            let home = variable("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
            vec![".codex/config.toml".into(), home.join("config.toml")]
        }
        "cursor" => vec![".cursor/mcp.json".into(), home.join(".cursor/mcp.json")],
        "vscode" => vec![".vscode/mcp.json".into(), settings.join("Code/User/mcp.json")],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_place() {
        let variable = |name: &str| (name == "HOME").then(|| "/h".into());
        for name in NAMES {
            assert!(!places(name, variable).unwrap().is_empty());
        }
        assert_eq!(places("notepad", variable), None);
        let codex = |name: &str| (name == "CODEX_HOME").then(|| "/c".into());
        assert_eq!(places("codex", codex).unwrap()[1], PathBuf::from("/c/config.toml"));
    }
}
