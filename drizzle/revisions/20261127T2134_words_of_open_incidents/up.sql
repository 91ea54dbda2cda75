-- words of open incidents
-- Revision 20261127T2134_words_of_open_incidents, after 20261127T2034_word_indexes_without_pending_lists

CREATE INDEX "incident_search_open_idx" ON "incident" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE visibility = 'Open';
