-- The chain of the row that was reached: two rows of one number are told apart. Empty in marks from before.
ALTER TABLE installation ADD COLUMN chain TEXT NOT NULL DEFAULT '';
