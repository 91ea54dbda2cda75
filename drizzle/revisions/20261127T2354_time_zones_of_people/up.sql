-- time zones of people
-- Revision 20261127T2354_time_zones_of_people, after 20261127T2145_words_of_open_incidents_in_their_records

ALTER TABLE "individual" ADD COLUMN "time_zone" text;
