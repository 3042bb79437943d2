-- A device's heartbeat interval outlives the hub's own restarts: without it a slow device would be called lost.
ALTER TABLE device ADD COLUMN interval_s REAL;

-- A question that is over stays known, so that an older one that comes late cannot open it again.
ALTER TABLE question ADD COLUMN open INTEGER NOT NULL DEFAULT 1;
