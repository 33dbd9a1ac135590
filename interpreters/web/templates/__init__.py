"""The templates of the pages, in the language of Jinja."""
