"""One example: its call, its verdict, and the records that say what is to be judged."""
