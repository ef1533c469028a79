//! Certificates: given means used. What cannot be read, or does not fit, ends the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Tls {
    /// Both or neither.
    pub fn of(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<Self>, String> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            (None, None) => Ok(None),
            _ => Err("--tls-cert and --tls-key go together".to_string()),
        }
    }

    /// For PostgreSQL's protocol.
    pub fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let read = |path: &Path, error: &dyn std::fmt::Display| format!("cannot use {}: {error}", path.display());
        let certificates = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
            .map_err(|error| read(&self.certificate, &error))?;
        if certificates.is_empty() {
            return Err(read(&self.certificate, &"there is no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| read(&self.key, &error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| read(&self.certificate, &error))?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// For Flight SQL.
    pub fn identity(&self) -> Result<tonic::transport::Identity, String> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        Ok(tonic::transport::Identity::from_pem(read(&self.certificate)?, read(&self.key)?))
    }
}
