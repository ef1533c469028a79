//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: a user proves to know a password that the server does not.
//!
//! pgwire has an exchange of its own, which wants the salted password; that is as good as the password to whoever steals the file. A verifier is not.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

/// PostgreSQL's number, which clients expect to be quick.
const ITERATIONS: u32 = 4096;
const MECHANISM: &str = "SCRAM-SHA-256";
/// An iteration count beyond this is a mistake in the file, and would stop every login for minutes.
const ITERATIONS_MAX: u32 = 10_000_000;

/// What a server keeps of a password.
#[derive(Debug, Clone)]
pub struct Verifier {
    iterations: u32,
    pub salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Verifier {
    /// The verifier of a password, with a salt of its own.
    pub fn of(password: &str) -> Self {
        Self::salted(password, rand::random::<[u8; 16]>().to_vec(), ITERATIONS)
    }

    fn salted(password: &str, salt: Vec<u8>, iterations: u32) -> Self {
        let key = salted_password(password, &salt, iterations);
        let stored_key = sha256(&hmac(&key, b"Client Key"));
        Self { server_key: hmac(&key, b"Server Key"), stored_key, salt, iterations }
    }

    /// `SCRAM-SHA-256$iterations:salt$stored key:server key`, as in PostgreSQL's `pg_authid`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "a verifier looks like SCRAM-SHA-256$4096:salt$storedkey:serverkey".to_string();
        let mut parts = text.split('$');
        let (Some(MECHANISM), Some(salting), Some(keys), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let (iterations, salt) = salting.split_once(':').ok_or_else(wrong)?;
        let (stored_key, server_key) = keys.split_once(':').ok_or_else(wrong)?;
        let decoded = |text: &str| STANDARD.decode(text).map_err(|_| wrong());
        let iterations = iterations.parse().ok().filter(|count| (1..=ITERATIONS_MAX).contains(count)).ok_or_else(wrong)?;
        let verifier =
            Self { iterations, salt: decoded(salt)?, stored_key: decoded(stored_key)?, server_key: decoded(server_key)? };
        if verifier.salt.is_empty() || verifier.stored_key.len() != 32 || verifier.server_key.len() != 32 {
            return Err(wrong());
        }
        Ok(verifier)
    }

    /// A verifier that no password fits.
    pub fn mock(key: &[u8], name: &str) -> Self {
        let salt = hmac(key, name.as_bytes())[..16].to_vec();
        Self { iterations: ITERATIONS, salt, stored_key: vec![0; 32], server_key: vec![0; 32] }
    }

    /// Whether this is the password, for protocols that send it.
    pub fn check(&self, password: &str) -> bool {
        let other = Self::salted(password, self.salt.clone(), self.iterations);
        is_equal(&other.stored_key, &self.stored_key)
    }
}

/// An exchange that has begun: the client said who it is, and was asked for a proof.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    nonce: String,
    /// What the client says of its channel, which it has to repeat.
    channel: String,
    /// Both first messages, as the proof covers them.
    first: String,
    first_client: String,
}

impl Exchange {
    /// Answers the client's first message with a challenge.
    pub fn begin(verifier: Verifier, message: &[u8]) -> Result<(Self, String), String> {
        Self::begin_with(verifier, message, &STANDARD.encode(rand::random::<[u8; 18]>()))
    }

    fn begin_with(verifier: Verifier, message: &[u8], own_nonce: &str) -> Result<(Self, String), String> {
        let message = std::str::from_utf8(message).map_err(|_| "the first message is no text")?;
        let mut parts = message.splitn(3, ',');
        let (Some(binding), Some(authorization), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("the first message is cut short".into());
        };
        if !matches!(binding, "n" | "y") {
            return Err("channel binding is not supported".into());
        }
        // The user's name is the connection's: PostgreSQL ignores the one in here, too.
        let nonce = bare.split(',').find_map(|part| part.strip_prefix("r=")).filter(|nonce| !nonce.is_empty());
        let nonce = format!("{}{own_nonce}", nonce.ok_or("the first message has no nonce")?);
        let first = format!("r={nonce},s={},i={}", STANDARD.encode(&verifier.salt), verifier.iterations);
        let channel = STANDARD.encode(format!("{binding},{authorization},"));
        Ok((Self { verifier, nonce, channel, first: first.clone(), first_client: bare.to_string() }, first))
    }

    /// Checks the proof; the answer proves to the client that the server knows the verifier.
    pub fn finish(&self, message: &[u8]) -> Result<String, String> {
        let message = std::str::from_utf8(message).map_err(|_| "the last message is no text")?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or("the last message has no proof")?;
        let part = |name: &str| without_proof.split(',').find_map(|part| part.strip_prefix(name));
        if part("c=") != Some(self.channel.as_str()) || part("r=") != Some(self.nonce.as_str()) {
            return Err("the last message does not fit the first".into());
        }
        let signed = format!("{},{},{without_proof}", self.first_client, self.first);
        let signature = hmac(&self.verifier.stored_key, signed.as_bytes());
        let proof = STANDARD.decode(proof).map_err(|_| "the proof is not base64")?;
        if proof.len() != signature.len() {
            return Err("the proof is cut short".into());
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        if !is_equal(&sha256(&client_key), &self.verifier.stored_key) {
            return Err("the password is wrong".into());
        }
        Ok(format!("v={}", STANDARD.encode(hmac(&self.verifier.server_key, signed.as_bytes()))))
    }
}

fn salted_password(password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
    let mut key = vec![0; 32];
    let iterations = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
    // Clients write letters that look alike in one way before they send a proof; what cannot be written so is taken as it is.
    let password = stringprep::saslprep(password).unwrap_or(password.into());
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut key);
    key
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn sha256(text: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, text).as_ref().to_vec()
}

/// Takes as long for a difference at the beginning as for one at the end.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 prints.
    #[test]
    fn the_published_exchange_is_ours() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::salted("pencil", salt, 4096);
        let (exchange, first) =
            Exchange::begin_with(verifier, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0").unwrap();
        assert_eq!(first, "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(exchange.finish(last.as_bytes()).unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let wrong = last.replace("dHzb", "dHzc");
        assert_eq!(exchange.finish(wrong.as_bytes()).unwrap_err(), "the password is wrong");
        let replayed = last.replace("rOpr", "xOpr");
        assert!(exchange.finish(replayed.as_bytes()).unwrap_err().contains("does not fit"));
        let unbound = last.replace("c=biws", "c=eSws");
        assert!(exchange.finish(unbound.as_bytes()).is_err());
        for cut in ["", "c=biws", "c=biws,p=", "p=x"] {
            assert!(exchange.finish(cut.as_bytes()).is_err());
        }
    }

    #[test]
    fn a_verifier_is_read_as_postgresql_writes_it() {
        let text = format!("SCRAM-SHA-256$4096:{}$", STANDARD.encode([7; 16]));
        let of = Verifier::salted("secret", vec![7; 16], 4096);
        let text = format!("{text}{}:{}", STANDARD.encode(&of.stored_key), STANDARD.encode(&of.server_key));
        let read = Verifier::parse(&text).unwrap();
        assert!(read.check("secret") && !read.check("Secret"));
        for wrong in
            ["", "SCRAM-SHA-256$4096", "SCRAM-SHA-256$0:aa$bb:cc", "SCRAM-SHA-256$4096:!$a:b", &text[..60], &format!("{text}$")]
        {
            assert!(Verifier::parse(wrong).is_err(), "{wrong}");
        }
    }
}
