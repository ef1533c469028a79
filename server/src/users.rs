//! Who may log in: a file with a line `name:password` for each user, or `name:` and a SCRAM verifier as PostgreSQL writes them, so that the file has no
//! password in it.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::scram::Verifier;

/// Users and what proves that they are who they say.
#[derive(Debug)]
pub struct Users {
    verifiers: HashMap<String, Verifier>,
    /// What an unknown user is asked to prove, so that nobody learns from the questions who is known.
    mock_key: [u8; 32],
}

impl Users {
    /// Reads the file, unless others than its owner can read it too.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!("{shown} can be read or written by others (mode {mode:o}); run chmod 600 {shown}"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        Self::parse(&text).map_err(|error| format!("{shown}: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut verifiers = HashMap::new();
        for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The line itself is not shown: there is a password in it.
            let (name, secret) = line.split_once(':').ok_or_else(|| format!("line {at}: write name:password"))?;
            if name.is_empty() || secret.is_empty() {
                return Err(format!("line {at}: neither the name nor the password may be empty"));
            }
            let verifier = if secret.starts_with("SCRAM-SHA-256$") {
                Verifier::parse(secret).map_err(|error| format!("line {at}: {error}"))?
            } else {
                Verifier::of(secret)
            };
            if verifiers.insert(name.to_string(), verifier).is_some() {
                return Err(format!("line {at}: {name} is named twice"));
            }
        }
        if verifiers.is_empty() {
            return Err("no user in it; write a line name:password".to_string());
        }
        Ok(Self { verifiers, mock_key: rand::random() })
    }

    /// What a user has to prove. For an unknown name it is something that cannot be proved, and the same each time.
    pub fn verifier(&self, name: &str) -> Verifier {
        self.verifiers.get(name).cloned().unwrap_or_else(|| Verifier::mock(&self.mock_key, name))
    }

    /// Whether this is the user's password.
    pub fn check(&self, name: &str, password: &str) -> bool {
        self.verifier(name).check(password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_users() {
        let users = Users::parse("# team\n\nada:lovelace\nbob:with:colon\n").unwrap();
        assert!(users.check("ada", "lovelace") && users.check("bob", "with:colon"));
        assert!(!users.check("ada", "x") && !users.check("eve", "") && !users.check("eve", "lovelace"));
        assert_eq!(users.verifier("eve").salt, users.verifier("eve").salt);
        for (text, error) in [("ada", "line 1"), ("a:b\na:c", "line 2"), ("", "no user"), ("a:", "empty")] {
            let said = Users::parse(text).unwrap_err();
            assert!(said.contains(error), "{said}");
        }
        let said = Users::parse("ada:SCRAM-SHA-256$4096:x").unwrap_err();
        assert!(said.contains("line 1") && !said.contains("4096:x"), "{said}");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "ada:lovelace\n").unwrap();
        let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o640);
        assert!(Users::read(file.path()).unwrap_err().contains("chmod 600"));
        set(0o600);
        assert!(Users::read(file.path()).unwrap().check("ada", "lovelace"));
    }
}
