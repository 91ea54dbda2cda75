-- Takes back: lookups

DROP INDEX "document_weblink_idx";

DROP INDEX "participant_individual_active_idx";
