-- Takes back: delivery

-- svc: data-loss table delivery
DROP TABLE "delivery";
