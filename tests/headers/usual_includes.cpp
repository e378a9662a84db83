// What nearly every file includes: the measure for what ours cost.
#include <cereal/cereal.hpp>

#include <iostream>
#include <map>
#include <string>

int main() {
  const std::map<std::string, int> counts{{"ada", 1}};
  std::cout << counts.size() << '\n';
}
