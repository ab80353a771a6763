"""How fast is every op, alone, at small, usual and large sizes?"""
