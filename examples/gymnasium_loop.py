"""A plain Gymnasium loop: an agent that knows how to add, token by token, without any learning.

python examples/gymnasium_loop.py
"""

import gymnasium as gym

EPISODES = 20


def main() -> float:
    """Play some episodes, print the last one, and return the mean reward."""
    env = gym.make("rlvr_envs:rlvr/Addition-v0", tokenizer="char", max_new_tokens=8, render_mode="ansi")
    tokenizer = env.unwrapped.tokenizer
    env.action_space.seed(0)
    total = 0.0
    for episode in range(EPISODES):
        env.reset(seed=episode)
        left, right = str(env.render()).rstrip("=").split("+")
        plan = [*tokenizer.encode(str(int(left) + int(right))), tokenizer.eos_token]
        terminated = truncated = False
        while not (terminated or truncated):
            # Half of the episodes act at random, so that there is something to see.
            token = plan.pop(0) if episode % 2 == 0 and plan else env.action_space.sample()
            _, reward, terminated, truncated, info = env.step(token)
        total += float(reward)
        print(f"{info['problem_id']}: {info['completion']!r} is {info['verdict'].outcome}, truncated: {truncated}")
    return total / EPISODES


if __name__ == "__main__":
    print(f"mean reward {main():.2f}")
