-- Reverts: index of changed reviews

DROP INDEX "document_review_due_idx";
