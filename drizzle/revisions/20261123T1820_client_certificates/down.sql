-- Reverts: client certificates

-- svc: data-loss table client_certificate
DROP TABLE "client_certificate";
