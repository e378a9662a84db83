def cmake_layout(_):
    pass


class CMakeToolchain:
    def __init__(self, recipe):
        self.cache_variables = recipe.variables

    def generate(self):
        pass


class CMakeDeps:
    def __init__(self, _):
        pass

    def generate(self):
        pass


class CMake:
    def __init__(self, recipe):
        self.recipe = recipe

    def configure(self):
        pass

    def build(self):
        pass

    def install(self):
        pass
