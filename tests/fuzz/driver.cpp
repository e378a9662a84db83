// Runs a fuzzer without libFuzzer: over the corpus, then over what becomes of it when bytes change.
// `<program> <corpus> <rounds> [seed]`; the same arguments always make the same inputs.
#include "fuzz/fuzzer.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;
using Engine = std::mt19937_64;

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const auto& file : files) {
    std::ifstream in{file, std::ios::binary};
    corpus.emplace_back(std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{});
  }
  return corpus;
}

std::size_t any_up_to(Engine& engine, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>{0, limit}(engine);
}

std::ptrdiff_t place_in(Engine& engine, const Bytes& bytes) {
  return static_cast<std::ptrdiff_t>(any_up_to(engine, bytes.size()));
}

void insert_part(Engine& engine, Bytes& bytes, const Bytes& other) {
  const std::ptrdiff_t from = place_in(engine, other);
  const auto length = static_cast<std::ptrdiff_t>(any_up_to(engine, 32));
  const std::ptrdiff_t to = std::min(from + length, static_cast<std::ptrdiff_t>(other.size()));
  const Bytes part{other.begin() + from, other.begin() + to};
  bytes.insert(bytes.begin() + place_in(engine, bytes), part.begin(), part.end());
}

void change(Engine& engine, Bytes& bytes, const std::vector<Bytes>& corpus) {
  constexpr std::uint8_t odd[] = {0,   1,   0x7f, 0x80, 0xff, '"', '\\', '{', '}',
                                  '[', ']', ',',  ':',  '-',  '0', 'e',  '.', '\n'};
  const std::ptrdiff_t at = place_in(engine, bytes);
  const std::uint8_t byte = odd[any_up_to(engine, std::size(odd) - 1)];
  switch (any_up_to(engine, 5)) {
    case 0:
      if (at < std::ssize(bytes)) bytes[static_cast<std::size_t>(at)] = byte;
      break;
    case 1:
      if (at < std::ssize(bytes)) {
        bytes[static_cast<std::size_t>(at)] ^=
            static_cast<std::uint8_t>(1U << any_up_to(engine, 7));
      }
      break;
    case 2:
      bytes.insert(bytes.begin() + at, 1 + any_up_to(engine, 3), byte);
      break;
    case 3:
      bytes.erase(
          bytes.begin() + at,
          bytes.begin() + std::min(at + 1 + static_cast<std::ptrdiff_t>(any_up_to(engine, 7)),
                                   std::ssize(bytes)));
      break;
    case 4:
      insert_part(engine, bytes, corpus[any_up_to(engine, corpus.size() - 1)]);
      break;
    default:
      bytes.resize(static_cast<std::size_t>(at));
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " <corpus> <rounds> [seed]\n";
    return 2;
  }
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::cerr << argv[1] << " is empty\n";
    return 2;
  }
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());

  Engine engine{argc > 3 ? std::stoull(argv[3]) : 1};
  const std::size_t rounds = std::stoull(argv[2]);
  for (std::size_t i = 0; i < rounds; ++i) {
    Bytes bytes = corpus[i % corpus.size()];
    for (std::size_t changes = 1 + any_up_to(engine, 3); changes > 0; --changes) {
      change(engine, bytes, corpus);
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::cout << corpus.size() << " inputs of the corpus, " << rounds << " made of them\n";
  return 0;
}
