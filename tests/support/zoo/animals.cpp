#include "support/zoo/zoo.hpp"

#include <utility>

namespace stela::test::zoo {

std::vector<Animal> animals() {
  std::vector<Animal> all;
  for (auto part :
       {of_the_database, of_the_outbox, of_partitions, of_messages, of_projections, of_consumers}) {
    for (Animal& each : part()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stela::test::zoo
