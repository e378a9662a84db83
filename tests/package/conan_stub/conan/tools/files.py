def load(_, path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def copy(recipe, pattern, src, dst):
    recipe.copied.append(pattern)


def rmdir(*_):
    pass
