-- Takes back: who was entered

-- It was only said of people: the release before knows nothing of it.
SELECT 1;
