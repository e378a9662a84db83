"""Runs the recipe and prints what it asks for. Usage: run_conanfile.py SOURCE"""

import glob
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "conan_stub"))


def recipe_in(path):
    spec = importlib.util.spec_from_file_location("recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from conan import ConanFile
    return next(each for each in vars(module).values()
                if isinstance(each, type) and issubclass(each, ConanFile) and each != ConanFile)


source = os.path.abspath(sys.argv[1])
folder = os.path.join(source, "packaging", "conan")
recipe_in(os.path.join(folder, "test_package", "conanfile.py"))
recipe = recipe_in(os.path.join(folder, "conanfile.py"))(folder)
recipe.source_folder = recipe.export_sources_folder = recipe.package_folder = "."
for step in ("set_version", "configure", "validate", "layout", "requirements",
             "build_requirements", "export_sources", "generate", "build"):
    getattr(recipe, step)()
for pattern in recipe.copied:
    assert glob.glob(os.path.join(source, pattern)), f"{pattern} matches no file"
    print("copies", pattern)
for step in ("package", "package_info"):
    getattr(recipe, step)()

print("version", recipe.version)
for reference in recipe.required:
    print("requires", reference.replace(" ", ""))
for name, value in recipe.variables.items():
    print("option", f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}")
for folder in recipe.cpp_info.builddirs:
    print("config", folder)
