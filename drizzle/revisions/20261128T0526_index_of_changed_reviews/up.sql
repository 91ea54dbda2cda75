-- index of changed reviews
-- Revision 20261128T0526_index_of_changed_reviews, after 20261128T0104_index_of_commanders

CREATE INDEX "document_review_due_idx" ON "document" USING btree ("id") WHERE resource_type = 'review' and plugin_slug = 'markdown'
    and incident_id is not null and coalesce(task_cursor, '') !~ '^[0-9]';
