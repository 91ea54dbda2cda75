-- Takes back: settings that processes agree on

-- svc: data-loss table setting
DROP TABLE "setting";
