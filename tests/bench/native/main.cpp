// Times jobs one at a time as it is told to, so that others can have their turns between. Each line
// of standard input is a request:
//
//   prepare ID INPUTS COUNT... OUTPUTS COUNT... OPERATION SIZE...   then the inputs' floats as
//   bytes time ID CALLS                                                   answered by seconds
//   results ID                                                      answered by the outputs' floats
//   release ID
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include "jobs.hpp"

namespace {

std::vector<std::vector<float>> read_blocks(std::istream& words) {
  std::size_t blocks;
  words >> blocks;
  std::vector<std::vector<float>> result(blocks);
  for (auto& block : result) {
    std::size_t count;
    words >> count;
    block.resize(count);
  }
  return result;
}

std::unique_ptr<job> prepare(std::istream& words) {
  auto made = std::make_unique<job>();
  made->inputs = read_blocks(words);
  made->outputs = read_blocks(words);
  for (auto& block : made->inputs) {
    std::cin.read(reinterpret_cast<char*>(block.data()),
                  static_cast<std::streamsize>(block.size() * sizeof(float)));
  }
  set_call(*made, words);
  return made;
}

double seconds(const job& job, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) job.call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  std::map<int, std::unique_ptr<job>> jobs;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request;
    int id;
    words >> request >> id;
    if (request == "prepare") jobs[id] = prepare(words);
    if (request == "release") jobs.erase(id);
    if (request == "time") {
      int calls;
      words >> calls;
      std::printf("%.9f\n", seconds(*jobs[id], calls));
    }
    if (request == "results") {
      for (const auto& block : jobs[id]->outputs) {
        std::fwrite(block.data(), sizeof(float), block.size(), stdout);
      }
    }
    std::fflush(stdout);
  }
}
