-- The chain of the row that was reached, so that another row of the same number is recognised. Empty in older marks.
ALTER TABLE installation ADD COLUMN chain TEXT NOT NULL DEFAULT '';
