//! TLS on both sides: what a server is believed by, and what we show to clients.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use rustls_platform_verifier::Verifier;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::socket::Accepted;

/// HTTP/1.1, as both sides name it (RFC 7301).
pub const HTTP_1: &[u8] = b"http/1.1";
/// HTTP/2.
pub const HTTP_2: &[u8] = b"h2";

/// What a client hears that speaks plain HTTP to us,
const PLAIN: &str = "tapedeck speaks TLS on this address: use https://";
/// and in what.
const PLAIN_HEAD: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";

/// How long a client may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("`{path}` holds no {what} in PEM form")]
    Empty {
        /// Which.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// Key and certificate do not fit.
    #[error("the certificate in `{cert}` cannot be used with the key in `{key}`: {source}")]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// The system's roots, or those that were given, cannot be used.
    #[error("no certificate of a server could be checked: {0}; give the issuer's certificate as --ca FILE")]
    Roots(rustls::Error),
}

/// By what a server's certificate is believed.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    certificates: Vec<CertificateDer<'static>>,
    is_blind: bool,
}

impl Trust {
    /// By the platform's roots and by the certificates in these files.
    ///
    /// # Errors
    /// When one of them cannot be read or holds none.
    pub fn load(files: &[PathBuf]) -> Result<Self, TlsError> {
        let lists = files.iter().map(|path| certificates(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { certificates: lists.concat(), is_blind: false })
    }

    /// Whatever it shows is believed.
    pub const fn blind() -> Self {
        Self { certificates: Vec::new(), is_blind: true }
    }

    /// What a client of a server that is believed so needs.
    pub(super) fn client(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.is_blind {
            true => Arc::new(Blind(Arc::clone(&provider))),
            false => Arc::new(Careful {
                platform: Verifier::new_with_extra_roots(self.certificates.clone(), Arc::clone(&provider))
                    .map_err(TlsError::Roots)?,
                named: self.certificates.clone(),
            }),
        };
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsError::Roots)?;
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError::Empty { path: path.to_owned(), what: "certificate" }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// As the platform does; and a certificate that was named itself needs no issuer, only the right name.
#[derive(Debug)]
struct Careful {
    platform: Verifier,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Careful {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let checked =
            self.platform.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // Self-signed ones often say that they may issue others, and are refused as a server's for that.
        let is_refused_as_leaf = matches!(
            checked,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Other(_) | CertificateError::UnknownIssuer
            ))
        );
        if is_refused_as_leaf && self.named.iter().any(|named| named == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.platform.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.platform.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.platform.supported_verify_schemes()
    }
}

/// Whatever a server shows is good enough, as long as it has the key to it.
#[derive(Debug)]
struct Blind(Arc<CryptoProvider>);

impl ServerCertVerifier for Blind {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Ends the TLS of our clients; HTTP/1.1 and HTTP/2 are offered to them.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Acceptor {
    /// Shows clients the certificates in one file, ours first, and has the key in another.
    ///
    /// # Errors
    /// When they cannot be read, or do not belong to each other.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(cert)?;
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
            .map_err(|_| TlsError::Empty { path: key.to_owned(), what: "private key" })?;
        let wrong = |source| TlsError::Pair { cert: cert.to_owned(), key: key.to_owned(), source };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(wrong)?;
        config.alpn_protocols = vec![HTTP_1.to_vec(), HTTP_2.to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Agrees with a client that has connected. One that speaks plain HTTP is told so.
    ///
    /// # Errors
    /// When they do not agree, or not in time: a sentence and [`io::ErrorKind::InvalidData`], unless the client has left
    /// or never said anything.
    pub async fn accept(&self, mut stream: TcpStream) -> io::Result<Accepted> {
        let refused = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let mut has_begun = false;
        let accepted = timeout(HANDSHAKE, async {
            let mut first = [0];
            has_begun = stream.peek(&mut first).await? == 1;
            // The first byte of a handshake (RFC 8446, 5.1); those of HTTP are letters.
            if first[0].is_ascii_alphabetic() {
                stream.write_all([PLAIN_HEAD, PLAIN, "\n"].concat().as_bytes()).await?;
                // What has been sent is read, or else the answer would be lost in a reset.
                let _ = stream.read(&mut [0; 16 << 10]).await?;
                return Err(refused(PLAIN.to_owned()));
            }
            let accepted = self.0.accept(stream).await.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => refused(format!("tapedeck: no TLS was agreed on: {error}")),
                _ => error,
            });
            Ok(Accepted::Tls(Box::new(accepted?)))
        });
        match accepted.await {
            Ok(accepted) => accepted,
            Err(_) if has_begun => {
                let time = HANDSHAKE.as_secs();
                Err(refused(format!("tapedeck: no TLS was agreed on within {time} seconds")))
            }
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Whether two sides agreed on HTTP/2.
pub fn is_http2(protocol: Option<&[u8]>) -> bool {
    protocol == Some(HTTP_2)
}
