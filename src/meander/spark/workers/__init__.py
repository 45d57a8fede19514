"""The processes of Spark: Java, its failures, and the Python workers that run cells."""
