"""The store: one SQLite database in a data folder, one writer, its migrations, its check, its backup."""
