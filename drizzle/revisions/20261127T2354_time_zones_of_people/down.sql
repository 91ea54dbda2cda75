-- Reverts: time zones of people

-- svc: data-loss column individual.time_zone
ALTER TABLE "individual" DROP COLUMN "time_zone";
