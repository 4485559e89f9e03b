"""Is a reconstruction better when no match is missed, and what do exact matches cost?"""
