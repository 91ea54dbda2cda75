-- Takes back: who is listed

-- svc: data-loss column conversation_message.origin
ALTER TABLE "conversation_message" DROP COLUMN "origin";

-- svc: data-loss column individual.listed
ALTER TABLE "individual" DROP COLUMN "listed";
