-- Reverts: versions of documents

-- svc: data-loss table document_version
DROP TABLE "document_version";
