-- words of open incidents in their records
-- Revision 20261127T2145_words_of_open_incidents_in_their_records, after 20261127T2134_words_of_open_incidents

CREATE INDEX "conversation_message_search_open_idx" ON "conversation_message" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE not ("conversation_message"."search" @@ '''~restricted'''::tsquery);

CREATE INDEX "document_search_open_idx" ON "document" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE not ("document"."search" @@ '''~restricted'''::tsquery);

CREATE INDEX "event_search_open_idx" ON "event" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE kind = 'note' and not ("event"."search" @@ '''~restricted'''::tsquery);

CREATE INDEX "status_report_search_open_idx" ON "status_report" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE not ("status_report"."search" @@ '''~restricted'''::tsquery);

CREATE INDEX "task_search_open_idx" ON "task" USING gin ("search",(array["id" >> 12])) WITH (fastupdate=false) WHERE not ("task"."search" @@ '''~restricted'''::tsquery);
