// What can be timed: an operation over inputs that it owns.
#pragma once

#include <functional>
#include <sstream>
#include <vector>

struct job {
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> outputs;
  std::vector<float> state;
  std::vector<char> workspace;
  std::function<void()> call;
};

// Sets `call` by what the words say: attention, linear, eigen, rnn, lstm or gru, and its sizes.
void set_call(job& job, std::istream& words);
