//! Certificates, and servers that show them.

use std::{net::TcpListener, path::PathBuf, sync::Arc, thread::JoinHandle};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, PublicKeyData as _};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

use super::http::json;

/// An issuer, and what it issued.
pub(crate) struct Issuer {
    inner: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// What a server shows.
pub(crate) struct Shown {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

impl Issuer {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Issuers of one name would be taken for one.
        let name = format!("issuer {:?}", &key.der_bytes()[1..9]);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let inner = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { inner, folder: tempfile::tempdir().unwrap() }
    }

    /// The file that holds its certificate.
    pub(crate) fn file(&self) -> PathBuf {
        let path = self.folder.path().join("ca.pem");
        std::fs::write(&path, self.inner.pem()).unwrap();
        path
    }

    pub(crate) fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.inner).unwrap();
        Shown { certificate, key }
    }

    /// The files of a certificate and its key.
    pub(crate) fn files(&self, shown: &Shown) -> (PathBuf, PathBuf) {
        let (cert, key) = (self.folder.path().join("cert.pem"), self.folder.path().join("key.pem"));
        std::fs::write(&cert, shown.certificate.pem()).unwrap();
        std::fs::write(&key, shown.key.serialize_pem()).unwrap();
        (cert, key)
    }
}

/// How a server speaks TLS.
pub(crate) fn config(shown: &Shown, protocols: &[&str]) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(shown.key.serialize_der()));
    let builder = ServerConfig::builder_with_provider(ring::default_provider().into());
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(vec![shown.certificate.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config.into()
}

/// A server that answers one request in HTTP/1.1. Gives the name it was called by, the protocol and the head.
pub(crate) fn serve_once(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    answer: &'static str,
) -> JoinHandle<Option<(String, String, String)>> {
    std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        answer_once(tcp, config, answer)
    })
}

/// The same on a connection that is there.
pub(crate) fn answer_once(
    tcp: std::net::TcpStream,
    config: Arc<ServerConfig>,
    answer: &str,
) -> Option<(String, String, String)> {
    use std::io::{Read as _, Write as _};
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    stream.write_all(json(answer).as_bytes()).unwrap();
    stream.flush().unwrap();
    let name = stream.conn.server_name().unwrap_or_default().to_owned();
    let protocol = String::from_utf8(stream.conn.alpn_protocol().unwrap_or_default().to_vec()).unwrap();
    // A client in front of it reads the answer before this closes.
    let _ = stream.read(&mut [0; 1000]);
    Some((name, protocol, String::from_utf8(head).unwrap()))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client's way to a front whose certificate is for `localhost`.
pub(crate) async fn connect(
    address: &str,
    issuer: &Issuer,
    protocol: &str,
) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(issuer.file()).unwrap()).unwrap();
    let builder =
        rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}
