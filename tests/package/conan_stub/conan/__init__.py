"""As much of Conan as Stela's recipe calls: it notes what it is asked for."""


class _Options:
    def __init__(self, values):
        self.__dict__.update(values)

    def rm_safe(self, name):
        self.__dict__.pop(name, None)


class _Info:
    def __init__(self):
        self.properties = {}
        self.builddirs = []

    def set_property(self, name, value):
        self.properties[name] = value


class ConanFile:
    options = {}
    default_options = {}

    def __init__(self, recipe_folder, **options):
        self.recipe_folder = recipe_folder
        own = {name: value for name, value in self.default_options.items() if "*" not in name}
        assert set(own) == set(self.options), "each option has a default"
        assert all(own[name] in values for name, values in self.options.items())
        self.options = _Options({**own, **options})
        self.cpp_info = _Info()
        self.required = []
        self.copied = []
        self.variables = {}

    def requires(self, reference, **_):
        self.required.append(reference)

    def tool_requires(self, reference):
        self.required.append(reference)
