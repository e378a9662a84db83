// The `stela` command.
#include <stela/tool.hpp>

int main(int argc, char** argv) {
  return stela::tool::run(argc, argv);
}
