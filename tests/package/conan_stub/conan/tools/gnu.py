class PkgConfigDeps:
    def __init__(self, _):
        pass

    def generate(self):
        pass
